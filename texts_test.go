package setpoint_test

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// wordsMax are the texts that a newcomer reads whole, and how many words they may have. What
// is more belongs into docs.
var wordsMax = map[string]int{"README.md": 1200, "ARCHITECTURE.md": 2000}

// otherPaths are the texts that name files which are not of today's tree, and why.
var otherPaths = map[string]string{
	"CHANGELOG.md":               "names what was",
	"test/consistency/RECORD.md": "names what was",
	"docs/limits.md":             "names upstream's files",
}

var (
	fencedBlock = regexp.MustCompile("(?ms)^ *```.*?^ *```")
	codeSpan    = regexp.MustCompile("`[^`\n]*`")
	textLink    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	// A path of the repository that a text names: `raftstore/state`, `docs/limits.md`.
	namedPath = regexp.MustCompile("`((?:agent|apiserver|cmd|controllers|deploy|docs|internal|raftstore|server|test)/[A-Za-z0-9_./-]*[A-Za-z0-9_])`")
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
		if otherPaths[file] != "" {
			continue
		}
		for _, found := range namedPath.FindAllStringSubmatch(fencedBlock.ReplaceAllString(text, ""), -1) {
			if _, err := os.Stat(found[1]); err != nil {
				t.Errorf("%s names `%s`, which does not exist", file, found[1])
			}
		}
	}
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
			if base := entry.Name(); name != "." && (base[0] == '.' || base == "testdata" || base == "bin" || base == "dist") {
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
