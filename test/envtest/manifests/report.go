package main

import (
	"bufio"
	_ "embed"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
)

const exampleMax = 1500 // characters

//go:embed known.txt
var knownText string

// difference is one of many objects.
type difference struct {
	objects int
	example string
}

// report collects differences. Its methods may be called at once.
type report struct {
	mu      sync.Mutex
	found   map[string]*difference
	answers map[string]int
	known   []known
	hidden  map[string]int // how many differences a reason explains
}

// known is what differences that are meant look like, and why they are.
type known struct {
	pattern *regexp.Regexp
	reason  string
}

func newReport() *report {
	r := &report{found: map[string]*difference{}, answers: map[string]int{}, hidden: map[string]int{}}
	for line := range strings.Lines(knownText) {
		if pattern, reason, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok {
			r.known = append(r.known, known{regexp.MustCompile(pattern), reason})
		}
	}
	return r
}

func (r *report) count(what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answers[what]++
}

// note is a difference, unless it is known.
func (r *report) note(what, example string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, k := range r.known {
		if k.pattern.MatchString(what + " " + example) {
			r.hidden[k.reason]++
			return
		}
	}
	if r.found[what] == nil {
		r.found[what] = &difference{example: example[:min(len(example), exampleMax)]}
	}
	r.found[what].objects++
}

// compare tells how two answers differ: first by their codes, else by warnings and fields.
func (r *report) compare(kind, file string, a [2]answer) {
	r.count(fmt.Sprint("answered ", a[0].code))
	if a[0].code != a[1].code || a[0].code == 0 {
		r.note(fmt.Sprintf("%s: %d upstream, %d ours", kind, a[0].code, a[1].code),
			fmt.Sprintf("%s\n   upstream: %v\n   ours: %v", file, a[0].object["message"], a[1].object["message"]))
		return
	}
	if a[0].code < http.StatusMultipleChoices { // who is refused reads why
		r.warnings(kind, file, a)
	}
	for _, d := range differences(a[0].object, a[1].object) {
		path, _, _ := strings.Cut(d, ":")
		r.note(fmt.Sprintf("%s: %d, %s", kind, a[0].code, path), file+"\n   "+d)
	}
}

func (r *report) warnings(kind, file string, a [2]answer) {
	for i, who := range []string{"upstream", "ours"} {
		for _, w := range a[i].warnings {
			if !slices.Contains(a[1-i].warnings, w) {
				r.note(kind+": only "+who+" warns", file+"\n   "+w)
			}
		}
	}
}

// print writes all, what most objects have first, and fails if there is a difference that is not known.
func (r *report) print(w *bufio.Writer) error {
	defer w.Flush()
	fmt.Fprintln(w, r.answers)
	for _, reason := range slices.Sorted(maps.Keys(r.hidden)) {
		fmt.Fprintf(w, "known, %d: %s\n", r.hidden[reason], reason)
	}
	names := slices.SortedFunc(maps.Keys(r.found), func(a, b string) int {
		if d := r.found[b].objects - r.found[a].objects; d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	for _, name := range names {
		fmt.Fprintf(w, "%d × %s\n   %s\n", r.found[name].objects, name, r.found[name].example)
	}
	if len(names) > 0 {
		return fmt.Errorf("%d differences that are not in known.txt", len(names))
	}
	return nil
}
