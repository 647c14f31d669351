package web

import (
	"io/fs"
	"path"
	"regexp"
	"strings"
	"testing"
)

// each calls judge with the name and the text of each file.
func each(t *testing.T, judge func(name, text string)) {
	t.Helper()
	names, err := fs.ReadDir(Files, ".")
	if err != nil || len(names) < 10 {
		t.Fatalf("%d files: %v", len(names), err)
	}
	for _, entry := range names {
		text, err := fs.ReadFile(Files, entry.Name())
		if err != nil {
			t.Fatal(err)
		}
		judge(entry.Name(), string(text))
	}
}

func TestAllFilesAreSmall(t *testing.T) {
	total := 0
	each(t, func(_, text string) { total += len(text) })
	if total > BytesMax {
		t.Errorf("%d bytes, at most %d", total, BytesMax)
	}
	t.Logf("%d bytes", total)
}

// forbidden is what no file says: what the policy of cmd/setpoint/ui would stop, or what would read text of a cluster as a program.
var forbidden = map[string]*regexp.Regexp{
	"an address elsewhere":        regexp.MustCompile(`(?i)\b(https?|wss?):|["'(=]//`),
	"a script in the page":        regexp.MustCompile(`(?i)<script(?:\s+type="module")?(?:\s+src="[^"]+")?>\s*[^<\s]|<script(?:\s+type="module")?>`),
	"a listener in the page":      regexp.MustCompile(`(?i)<[a-z][^>]*\son[a-z]+\s*=`),
	"a style in the page":         regexp.MustCompile(`(?i)<style|<[a-z][^>]*\sstyle\s*=`),
	"text that is read as HTML":   regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|createContextualFragment|srcdoc`),
	"text that is read as script": regexp.MustCompile(`\beval\(|new Function|import\(|javascript:|set(Timeout|Interval)\(\s*['"]`),
	"an address from the root":    regexp.MustCompile("(?:fetch|ask|getJSON)\\(['\"`]/|(?:src|href)=\"/"),
}

// own are addresses that are names and lead nowhere.
var own = strings.NewReplacer("http://www.w3.org/2000/svg", "")

func TestNothingIsInlineOrFromElsewhere(t *testing.T) {
	each(t, func(name, text string) {
		for what, pattern := range forbidden {
			if found := pattern.FindString(own.Replace(text)); found != "" {
				t.Errorf("%s has %s: %s", name, what, found)
			}
		}
	})
}

func TestWhatIsForbiddenIsFound(t *testing.T) {
	for what, texts := range map[string][]string{
		"an address elsewhere":        {`fetch("https://example.com")`, `src="//example.com/x.js"`, `url(//example.com/f)`, `new WebSocket('ws://x')`},
		"a script in the page":        {`<script>a()</script>`, `<script type="module">a()</script>`, `<script src="a.js">a()</script>`},
		"a listener in the page":      {`<a onclick="a()">`, `<body class="x" onload = a()>`},
		"a style in the page":         {`<style>a{}</style>`, `<p style="color:red">`},
		"text that is read as HTML":   {`e.innerHTML = name`, `new DOMParser()`},
		"text that is read as script": {`eval(x)`, `new Function(x)`, `setTimeout("a()", 1)`, `<a href="javascript:a()">`},
		"an address from the root":    {"getJSON('/api')", `<img src="/a.svg">`},
	} {
		for _, text := range texts {
			if !forbidden[what].MatchString(text) {
				t.Errorf("%s is not found in %s", what, text)
			}
		}
	}
	for what, pattern := range forbidden {
		if found := pattern.FindString(`<script type="module" src="app.js"></script> el('a', { onclick: () => go() }) // a comment`); found != "" {
			t.Errorf("%s: %q is none", what, found)
		}
	}
}

// TestEveryFileIsReached: each file is named by the page or by another file, and what they name is there.
func TestEveryFileIsReached(t *testing.T) {
	files, named := map[string]bool{}, map[string]bool{"index.html": true}
	each(t, func(name, text string) {
		files[name] = true
		for _, found := range regexp.MustCompile(`(?:from '\./|src="|href="|Worker\(')([a-z]+\.(?:js|css|svg))`).FindAllStringSubmatch(text, -1) {
			named[path.Base(found[1])] = true
		}
	})
	for name := range named {
		if !files[name] {
			t.Errorf("%s is named and not there", name)
		}
	}
	for name := range files {
		if !named[name] {
			t.Errorf("nothing names %s", name)
		}
	}
}

// TestThePageCanBeHeard: what a screen reader needs is there.
func TestThePageCanBeHeard(t *testing.T) {
	all := ""
	each(t, func(_, text string) { all += text })
	for _, want := range []string{
		`<html lang="en">`, `role="status"`, `aria-label="Views"`, `<label for="query">`, `class="skip"`, `role: 'grid'`, `role: 'gridcell'`,
		`aria-rowcount`, `aria-valuetext`, `aria-current`, `prefers-color-scheme: dark`, `:focus-visible`,
	} {
		if !strings.Contains(all, want) {
			t.Errorf("no file has %s", want)
		}
	}
}
