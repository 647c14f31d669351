// Command generated asks whether the tests of the store would notice bugs that nobody chose: it makes every small change that it knows of
// in raftstore and apiserver/storage, takes a sample by a seed, and runs the tests against one after the other.
//
// It owns which changes there are (points.go): comparisons, + and -, && and ||, negated conditions, integers moved by one, true and false,
// calls and assignments of fields left out, and errors returned as nil. It leaves alone what is generated, what is there for
// tests, texts of logs and errors, modes of files, and locks. A change is a copy of one file, put into a build by go's -overlay, as in
// test/mutants, whose bugs somebody thought of.
//
// The tests run first once without a mutant, to learn which lines each package's tests come to, and how long they take. Against
// a mutant run those of its own package, then those of packages that import it, the nearest first, at most judgesMax, in their short form;
// packages that never come to the line are passed over. A mutant is caught if tests fail, or hang for longer than hangLimit. One that
// does not compile is not counted. One that changes nothing that anybody can see stands in equivalent.tsv with the reason.
//
// Promises: one seed is one sample, of which a smaller one is a part, and code that changes elsewhere does not change it; no file of the
// tree is written; memory and files of mutants are bounded, and what they leave is removed.
//
// Nobody imports it; `make mutants-generated SEED=1 N=100 FOCUS=raftstore/state` runs it. Tested by `go test`: on small sources, on a
// module of three packages with mutants of each outcome, and on the source of the store, of which most mutants compile.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
)

// changedPatterns name the packages whose code is changed, judgePatterns those whose tests judge.
func changedPatterns() []string { return []string{"./raftstore/...", "./apiserver/storage/..."} }
func judgePatterns() []string   { return append(changedPatterns(), "./test/simulation") }

// options are the flags.
type options struct {
	root, focus, table string
	only               string
	seed               uint64
	n, judges          int
	list               bool
}

func main() {
	var o options
	flag.Uint64Var(&o.seed, "seed", 1, "which mutants are chosen")
	flag.IntVar(&o.n, "n", 100, "how many mutants")
	flag.IntVar(&o.judges, "judges", judgesMax, "how many packages' tests run against one mutant at most; 1: only its own, or those of one importer if it has none")
	flag.StringVar(&o.focus, "focus", "", "change only this package, and those below it: raftstore/state")
	flag.StringVar(&o.only, "only", "", "of the chosen mutants try only those whose line in the list matches this regular expression")
	flag.StringVar(&o.table, "o", "", "write the results, with tabs between, to this file")
	flag.StringVar(&o.root, "root", ".", "the module's root")
	flag.BoolVar(&o.list, "list", false, "print the chosen mutants and run none")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "mutants-generated:", err)
		os.Exit(1)
	}
}

// run tries a sample and prints what became of it.
func run(ctx context.Context, o options, out io.Writer) (err error) {
	if o.root, err = filepath.Abs(o.root); err != nil {
		return err
	}
	world, err := open(o.root, changedPatterns(), judgePatterns())
	if err != nil {
		return err
	}
	world.judgesMax = o.judges
	all, err := world.points(o.focus)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return fmt.Errorf("there is nothing to change at %q: name a package below raftstore or apiserver/storage", o.focus)
	}
	sample, err := matching(Sample(all, o.seed, o.n), o.only)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d of %d mutants, seed %d\n", len(sample), len(all), o.seed)
	if o.list {
		for _, m := range sample {
			fmt.Fprintln(out, m)
		}
		return nil
	}
	if err := boundMutants(); err != nil {
		return err
	}
	return world.tryAll(ctx, sample, &report{out: out, path: o.table})
}

// world is the module, as it is.
type world struct {
	root            string
	changed, judges []*Package
	clean           map[*Package]*Clean
	judgesMax       int
}

func open(root string, changed, judges []string) (*world, error) {
	tree, err := NewTree(root, slices.Concat(changed, judges)...)
	if err != nil {
		return nil, err
	}
	w := &world{root: root, clean: map[*Package]*Clean{}, judgesMax: judgesMax}
	if w.judges, err = tree.Packages(root, judges...); err != nil {
		return nil, err
	}
	w.changed, err = tree.Packages(root, changed...)
	// What is for tests alone, as raftstoretest, is not changed.
	w.changed = slices.DeleteFunc(w.changed, func(p *Package) bool { return strings.HasSuffix(p.Name, "test") })
	return w, err
}

// points are the mutants of all packages in focus.
func (w *world) points(focus string) (all []*Mutant, err error) {
	w.changed = Focus(w.changed, focus)
	for _, p := range w.changed {
		if err := p.Read(); err != nil {
			return nil, err
		}
		all = append(all, p.Points()...)
	}
	return all, nil
}

// tryAll runs all tests that may be needed once without a mutant, and then those of each.
func (w *world) tryAll(ctx context.Context, sample []*Mutant, r *report) error {
	reasons, err := equivalents(equivalentText)
	if err != nil {
		return err
	}
	if err := w.measure(ctx, sample, r); err != nil {
		return err
	}
	for _, m := range sample {
		v := Verdict{Outcome: Equivalent, By: reasons[m.Key()]}
		if v.By == "" {
			if v, err = try(ctx, w.root, m, w.judgesOf(m), w.clean); err != nil {
				return fmt.Errorf("%s: %s: %w", m.Place(), m.What, err)
			}
		}
		r.add(m, v)
	}
	return r.end()
}

func (w *world) measure(ctx context.Context, sample []*Mutant, r *report) error {
	changed := map[*Package][]*Package{}
	for _, p := range w.changed {
		if !slices.ContainsFunc(sample, func(m *Mutant) bool { return m.Package == p }) {
			continue
		}
		for _, j := range w.near(p) {
			changed[j] = append(changed[j], p)
		}
	}
	for _, j := range w.judges {
		if changed[j] == nil {
			continue
		}
		clean, err := w.measureOne(ctx, j, changed[j])
		if err != nil {
			return err
		}
		w.clean[j] = clean
		r.note("%-40s %6.1f s without a mutant", j.Name, clean.Seconds)
	}
	return nil
}

// near are the packages that may judge: if it is only one, it is the package itself.
func (w *world) near(p *Package) []*Package {
	judges := Judges(p, w.judges, w.seconds)
	if w.judgesMax == 1 && len(judges) > 0 {
		return judges[:1]
	}
	return judges
}

// seconds is how long the tests of a package take, once that was measured.
func (w *world) seconds(p *Package) float64 {
	if clean := w.clean[p]; clean != nil {
		return clean.Seconds
	}
	return 0
}

func (w *world) measureOne(ctx context.Context, judge *Package, changed []*Package) (*Clean, error) {
	dir, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	return Measure(ctx, w.root, dir, judge, changed)
}

// judgesOf are those that come to the mutant's line, the nearest.
func (w *world) judgesOf(m *Mutant) []*Package {
	judges := w.near(m.Package)
	judges = slices.DeleteFunc(judges, func(p *Package) bool { return !w.clean[p].Runs(m) })
	return judges[:min(w.judgesMax, len(judges))]
}
