package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

// report prints a line for each mutant as it goes.
type report struct {
	out io.Writer
	// path is where the table is written in the end, or empty.
	path  string
	rows  []string
	count map[Outcome]int
}

func (r *report) note(format string, values ...any) { fmt.Fprintf(r.out, format+"\n", values...) }

func (r *report) add(m *Mutant, v Verdict) {
	if r.count == nil {
		r.count = map[Outcome]int{}
	}
	r.count[v.Outcome]++
	r.note("%-16s %5.1f s  %s %s: %s [%s]", v.Outcome, v.Took.Round(time.Second/10).Seconds(), m.Place(), m.Function, m.What,
		strings.TrimSpace(v.By))
	r.rows = append(r.rows, strings.Join([]string{
		string(v.Outcome), m.Place(), m.Key(), strings.TrimSpace(v.By), fmt.Sprintf("%.1f", v.Took.Seconds()),
	}, "\t")+"\n")
}

// end prints the sums. Of what does not compile, or is the same, nothing can be caught.
func (r *report) end() error {
	for _, o := range []Outcome{Caught, CaughtHang, Survived, NotCovered, NotBuilt, Equivalent} {
		r.note("%-16s %5d", o, r.count[o])
	}
	caught := r.count[Caught] + r.count[CaughtHang]
	judged := caught + r.count[Survived] + r.count[NotCovered]
	r.note("%d of %d caught: %.1f %%", caught, judged, 100*float64(caught)/float64(max(judged, 1)))
	if r.path == "" {
		return nil
	}
	slices.SortFunc(r.rows, cmp.Compare[string])
	title := "outcome\tplace\tpackage\tfunction\twhat\tby\tseconds\n"
	return os.WriteFile(r.path, []byte(title+strings.Join(r.rows, "")), 0o644)
}
