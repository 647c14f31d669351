package house

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode"
)

// wordsMax are the texts that a newcomer reads whole, and how many words they may have. What
// is more belongs into docs.
var wordsMax = map[string]int{"README.md": 900, "ARCHITECTURE.md": 2000}

// otherPaths are the texts that name files which are not of today's tree, and why.
var otherPaths = map[string]string{
	"docs/limits.md":       "names upstream's files",
	"test/upstream/doc.go": "names upstream's folder",
}

// histories name what was: today's tree may still have it, or not.
var histories = []string{"CHANGELOG.md", "test/consistency/RECORD.md"}

// folders are those of the repository that texts name.
const folders = "agent|apiserver|cmd|controllers|deploy|docs|findings|internal|raftstore|server|setpointtest|test"

var (
	fencedBlock = regexp.MustCompile("(?ms)^ *```.*?^ *```")
	codeSpan    = regexp.MustCompile("`[^`\n]*`")
	textLink    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	// A path of the repository that a text names: `raftstore/state`, `docs/limits.md`.
	namedPath = regexp.MustCompile("`((?:" + folders + ")/[A-Za-z0-9_./-]*[A-Za-z0-9_])`")
	// The same in a comment, where it stands alone: agent/pods, agent/resources/topology/{cpus,memory}, raftstore/state.Apply.
	commentPath = regexp.MustCompile(`(?:^|[^\w./{-])((?:` + folders + `)/[A-Za-z0-9_/.{},-]*[A-Za-z0-9_}])`)
	// A file without its folder: `rooms_test.go`. It may be of any folder.
	namedFile = regexp.MustCompile("`([A-Za-z0-9_-]+\\.(?:go|md|sh|tsv|txt|proto|mod))`")
	braces    = regexp.MustCompile(`^(.*)\{(.*)\}(.*)$`)
	// symbol is what follows the package in raftstore/state.Apply.
	symbol = regexp.MustCompile(`\.[A-Z]\w*$`)
)

func TestHouseTextsAreShort(t *testing.T) {
	for file, limit := range wordsMax {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if words := len(strings.Fields(string(text))); words > limit {
			t.Errorf("%s has %d words, the limit is %d\n\twhy: a newcomer reads it whole; move the rest to docs", file, words, limit)
		}
	}
}

func TestHouseLinksLead(t *testing.T) {
	texts := readTexts(t)
	for file, text := range texts {
		for _, found := range textLink.FindAllStringSubmatch(codeSpan.ReplaceAllString(fencedBlock.ReplaceAllString(text, ""), ""), -1) {
			checkLink(t, texts, file, found[1])
		}
	}
}

// checkLink checks that the file of a link exists, and the heading that it names.
func checkLink(t *testing.T, texts map[string]string, file, link string) {
	t.Helper()
	if strings.Contains(link, "://") || strings.HasPrefix(link, "mailto:") {
		return
	}
	target, anchor, _ := strings.Cut(link, "#")
	if target == "" {
		target = file
	} else {
		target = path.Join(path.Dir(file), target)
	}
	if _, err := os.Stat(target); err != nil {
		t.Errorf("%s links to %s: there is no file %s", file, link, target)
		return
	}
	if anchor != "" && !slices.Contains(anchors(texts[target]), anchor) {
		t.Errorf("%s links to %s: %s has no such heading", file, link, target)
	}
}

func TestHouseTextsNameWhatExists(t *testing.T) {
	for file, text := range readTexts(t) {
		tellOfPaths(t, file, missingFiles(file, text, fileNames(t)))
	}
}

// TestHouseCommentsNameWhatExists: what the comment about a package says of others.
func TestHouseCommentsNameWhatExists(t *testing.T) {
	eachSource(t, func(f *sourceFile) {
		tellOfPaths(t, f.path, missingPackages(f))
	})
}

// tellOfPaths tells what a file names that is not there, but for otherPaths, which must have a need for that.
func tellOfPaths(t *testing.T, file string, missing []string) {
	t.Helper()
	switch excused := otherPaths[file] != ""; {
	case slices.Contains(histories, file):
	case !excused:
		tell(t, missing)
	case len(missing) == 0:
		t.Errorf("otherPaths names %s, which needs no exception any more: delete the line", file)
	}
}

// missingFiles are the paths and files that a text names and that are not there; names are those of all files.
func missingFiles(file, text string, names map[string]bool) (found []string) {
	text = fencedBlock.ReplaceAllString(text, "")
	for _, named := range namedPath.FindAllStringSubmatch(text, -1) {
		if _, err := os.Stat(named[1]); err != nil {
			found = append(found, fmt.Sprintf("%s names `%s`, which does not exist", file, named[1]))
		}
	}
	for _, named := range namedFile.FindAllStringSubmatch(text, -1) {
		if !names[named[1]] {
			found = append(found, fmt.Sprintf("%s names `%s`: no folder has a file of that name", file, named[1]))
		}
	}
	return found
}

// missingPackages are the folders and files that the comment about a package names and that are not there.
func missingPackages(f *sourceFile) (found []string) {
	if f.syntax.Doc == nil {
		return nil
	}
	for _, named := range commentPath.FindAllStringSubmatch(f.syntax.Doc.Text(), -1) {
		for _, name := range alternatives(symbol.ReplaceAllString(named[1], "")) {
			if _, err := os.Stat(name); err != nil {
				found = append(found, fmt.Sprintf("%s names %s, which does not exist", f.path, name))
			}
		}
	}
	return found
}

// alternatives are a/b and a/c of a/{b,c}.
func alternatives(path string) (all []string) {
	parts := braces.FindStringSubmatch(path)
	if parts == nil {
		return []string{path}
	}
	for name := range strings.SplitSeq(parts[2], ",") {
		all = append(all, alternatives(parts[1]+strings.TrimSpace(name)+parts[3])...)
	}
	return all
}

// fileNamesOnce finds the names of all files of the repository, without their folders.
var fileNamesOnce = sync.OnceValues(func() (map[string]bool, error) {
	names := map[string]bool{}
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && entry.Name() == ".git" {
			return filepath.SkipDir
		}
		names[entry.Name()] = true
		return err
	})
	return names, err
})

func fileNames(t *testing.T) map[string]bool {
	t.Helper()
	names, err := fileNamesOnce()
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// readTexts reads every Markdown file of the repository, by its path from the root.
func readTexts(t *testing.T) map[string]string {
	t.Helper()
	texts := map[string]string{}
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if base := entry.Name(); name != "." && (base[0] == '.' && base != ".github" || base == "testdata" || base == "bin" || base == "dist") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".md") {
			return nil
		}
		text, err := os.ReadFile(name)
		texts[filepath.ToSlash(name)] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return texts
}

// anchors are the names by which GitHub's links reach the headings of a text.
func anchors(text string) []string {
	var names []string
	for line := range strings.SplitSeq(fencedBlock.ReplaceAllString(text, ""), "\n") {
		heading := strings.TrimLeft(line, "#")
		if heading == line || !strings.HasPrefix(heading, " ") {
			continue
		}
		names = append(names, anchor(strings.TrimSpace(heading)))
	}
	return names
}

func anchor(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, heading)
}

func TestHouseAnchors(t *testing.T) {
	text := "# A page\n\n## What `dev` does, and why\n\n```\n# no heading\n```\n"
	if got, want := anchors(text), []string{"a-page", "what-dev-does-and-why"}; !slices.Equal(got, want) {
		t.Errorf("anchors are %q, want %q", got, want)
	}
}
