package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// options are the command line.
type options struct {
	suite        suite
	classes      string
	focus, skip  string
	dir          string
	mustPass     string
	onlyMustPass bool
	wholeList    bool
	update       bool
}

func main() {
	o := parseFlags()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ok, err := conform(ctx, o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}

func parseFlags() options {
	var o options
	flag.StringVar(&o.suite.kubeconfig, "kubeconfig", "", "the administrator's kubeconfig of the cluster to examine")
	flag.StringVar(&o.suite.ginkgo, "ginkgo", "", "the ginkgo program")
	flag.StringVar(&o.suite.binary, "e2e", "", "the program e2e.test")
	flag.StringVar(&o.suite.kubectl, "kubectl", "kubectl", "the kubectl that tests call")
	flag.StringVar(&o.suite.dir, "out", "", "folder for the suite's output and report")
	flag.IntVar(&o.suite.procs, "procs", 3, "cases that run at once")
	flag.StringVar(&o.classes, "class", "A,B,C,D", "classes of cases to run")
	flag.StringVar(&o.focus, "focus", "", "regular expression: only cases whose names match")
	flag.StringVar(&o.skip, "skip", "^$", "regular expression: no cases whose names match")
	flag.DurationVar(&o.suite.timeout, "timeout", 3*time.Hour, "the longest that the run may take; what is not done then has failed or was not run")
	flag.Func("suite-flag", "one more flag of e2e.test", func(f string) error {
		o.suite.flags = append(o.suite.flags, f)
		return nil
	})
	flag.StringVar(&o.dir, "dir", ".", "folder of cases.tsv, passing.txt, missing.tsv and, written by -update, RESULTS.md")
	flag.StringVar(&o.mustPass, "must-pass", "", "the list of cases that must pass; default: passing.txt of the folder")
	flag.BoolVar(&o.onlyMustPass, "only-must-pass", false, "run only the cases of that list")
	flag.BoolVar(&o.wholeList, "whole-list", false, "run only the cases of that list, and fail if one of them was not run")
	flag.BoolVar(&o.update, "update", false, "add cases that pass newly to the list")
	flag.Parse()
	o.mustPass = cmp.Or(o.mustPass, filepath.Join(o.dir, "passing.txt"))
	return o
}

// conform runs the wanted cases and prints the table. It is false if a case that
// must pass did not.
func conform(ctx context.Context, o options) (ok bool, err error) {
	all, err := readCases(o.dir)
	if err != nil {
		return false, err
	}
	required, err := readNames(o.mustPass)
	if err != nil {
		return false, err
	}
	focus, err := regexp.Compile(o.focus)
	if err != nil {
		return false, fmt.Errorf("-focus: %w", err)
	}
	skip, err := regexp.Compile(o.skip)
	if err != nil {
		return false, fmt.Errorf("-skip: %w", err)
	}
	wanted := selectCases(all, strings.Split(o.classes, ","), focus, skip)
	if o.onlyMustPass || o.wholeList {
		wanted = keepNames(wanted, required)
	}
	if o.wholeList {
		all = wanted
	}
	if len(wanted) == 0 {
		return false, fmt.Errorf("no case of classes %s matches %q", o.classes, o.focus)
	}
	fmt.Fprintf(os.Stderr, "conformance: %d of %d cases, %d at once; their output goes to %s\n", len(wanted), len(all), o.suite.procs, o.suite.logPath())
	results, err := o.suite.run(ctx, wanted)
	if err != nil {
		return false, err
	}
	printTable(os.Stdout, all, results)
	printFailures(os.Stdout, results)
	broken := brokenPromises(required, results)
	if o.wholeList {
		broken = append(broken, leftOut(required, results)...)
	}
	for _, name := range broken {
		fmt.Println("must pass and did not:", name)
	}
	if o.update {
		err = o.keep(all, withPassed(required, results))
	}
	return len(broken) == 0, err
}

// keep writes the list of cases that must pass, and what follows from it.
func (o options) keep(all []testCase, passing map[string]bool) error {
	if err := writeNames(o.mustPass, passing); err != nil {
		return err
	}
	return writeResults(o.dir, all, passing)
}
