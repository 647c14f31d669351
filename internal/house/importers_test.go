package house

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	importersBegin = "<!-- Who imports what: go test ./internal/house -update -->\n"
	importersEnd   = "<!-- end of who imports what -->\n"
	// importersMax are named one by one; of more the table tells how many there are in each part.
	importersMax = 8
)

// TestHouseRoomsTellWhoImports: docs/internals/packages.md says who imports each package, as the sources do.
func TestHouseRoomsTellWhoImports(t *testing.T) {
	shows(t, "docs/internals/packages.md", importersBegin, importersEnd, importersTable(importers(t)))
}

// importers are, for each package of ours, those whose product code imports it.
func importers(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	eachSource(t, func(f *sourceFile) {
		for _, imported := range f.imports {
			if other, ours := packageOfModule(imported); ours && !f.test && other != f.dir && !slices.Contains(found[other], f.dir) {
				found[other] = append(found[other], f.dir)
			}
		}
	})
	return found
}

func importersTable(importers map[string][]string) string {
	var b strings.Builder
	b.WriteString("\n| package | imported by |\n|---|---|\n")
	for _, dir := range slices.Sorted(maps.Keys(importers)) {
		by := slices.Sorted(slices.Values(importers[dir]))
		text := quoted(by)
		if len(by) > importersMax {
			text = perPart(by)
		}
		fmt.Fprintf(&b, "| `%s` | %s |\n", dir, text)
	}
	return b.String() + "\n"
}

// perPart says how many packages of each part there are.
func perPart(dirs []string) string {
	counts := map[string]int{}
	for _, dir := range dirs {
		part, _, _ := strings.Cut(dir, "/")
		counts[part]++
	}
	var texts []string
	for _, part := range slices.Sorted(maps.Keys(counts)) {
		texts = append(texts, fmt.Sprintf("%d of `%s`", counts[part], part))
	}
	return strings.Join(texts, ", ")
}

// callersByHand is how a text about a package begins to list who calls it.
var callersByHand = regexp.MustCompile(`(?:^|[.:;] )(?:It is called by|Called by|called by)\b`)

// TestHouseCallersAreNotListedByHand: such lists grow false with the next import, and nobody sees it.
func TestHouseCallersAreNotListedByHand(t *testing.T) {
	eachSource(t, func(f *sourceFile) {
		if listsCallers(f) {
			t.Errorf("%s lists who calls the package\n\twhy not: docs/internals/packages.md prints it from the imports; say what the package owns, promises and is tested by, "+
				"and what a caller must do", f.path)
		}
	})
}

func listsCallers(f *sourceFile) bool {
	return !f.test && f.syntax.Doc != nil && callersByHand.MatchString(strings.Join(strings.Fields(f.syntax.Doc.Text()), " "))
}

// namedCaller is a package of which a comment says that it calls the commented one, to tell when or with what.
var namedCaller = regexp.MustCompile(`(?:^|[ (])((?:` + folders + `)(?:/[a-z0-9]+)+) (?:calls|asks) it\b`)

// TestHouseCallersThatAreNamedCall: who is said to call a package imports it.
func TestHouseCallersThatAreNamedCall(t *testing.T) {
	by := importers(t)
	eachSource(t, func(f *sourceFile) {
		for _, name := range falseCallers(f, by[f.dir]) {
			t.Errorf("%s says that %s calls it, which does not import it\n\twhy: say when it is called, and leave by whom to docs/internals/packages.md", f.path, name)
		}
	})
}

func falseCallers(f *sourceFile, importers []string) (found []string) {
	if f.test || f.syntax.Doc == nil {
		return nil
	}
	for _, named := range namedCaller.FindAllStringSubmatch(strings.Join(strings.Fields(f.syntax.Doc.Text()), " "), -1) {
		if !slices.Contains(importers, named[1]) {
			found = append(found, named[1])
		}
	}
	return found
}

// shows checks that a text has what is generated between two marks, or puts it there.
func shows(t *testing.T, file, begin, end, want string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := strings.Cut(string(text), begin)
	shown, after, ends := strings.Cut(rest, end)
	if !begins || !ends {
		t.Fatalf("%s has no place for %s", file, begin)
	}
	if *update {
		if err := os.WriteFile(file, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if shown != want {
		t.Errorf("%s shows another table than the sources give: go test ./internal/house -update", file)
	}
}
