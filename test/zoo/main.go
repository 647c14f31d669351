// Command zoo runs the own suites of operators and clients that others wrote, on this program and on upstream's
// kube-apiserver and etcd, and keeps what came of it.
//
//	go run ./test/zoo -setpoint DIR [-upstream DIR] [-name NAME,NAME] [-keep]
//
// The two folders are what KUBEBUILDER_ASSETS names. Each suite is a recipe of a few lines in recipes.go: a module at a
// version, taken by the Go module proxy when it runs, and the packages whose tests want an API server. Nothing of
// theirs is in the repository. A package's tests are compiled once, and the same program runs on both sides, one after
// the other. Compiling is what takes long, so a recipe may raise Kubernetes's libraries to a release that other
// suites have too, with what is below them (raised.go). Only what passes on upstream's counts. Without -upstream that
// side is left out, and the row says so; it does not take the place of one that has both.
//
// It prints a row for each suite, keeps the rows in results.json, and makes docs/software.md of them. A suite that does
// not run, because its module has gone, its tests do not compile or its time is over, has one line that says so, and the
// others go on. A side that did not run has no counts. The exit status is 1 if a spec that passes on upstream's fails
// here and nobody has explained why, or if a suite did not run.
//
// Promises: two suites at once share no ports, no folders and no processes: each side of a package runs in a network
// and a process namespace of its own, and with folders of its own for HOME and temporary files. What it leaves running
// ends with it, and is told. It needs Linux, and root.
//
// Owned here: how a suite is fetched, compiled, run and counted, and the table. Tested by outputs of suites, and by
// worlds of two sides. Outside make test, since it fetches and compiles for an hour: make zoo.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

const (
	resultsFile = "test/zoo/results.json"
	pageFile    = "docs/software.md"
)

var errNotFine = errors.New("a suite did not run, or differs without a reason")

func main() {
	if len(os.Args) > 2 && os.Args[1] == insideCommand {
		os.Exit(inside(os.Args[2:]))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := command(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "zoo:", err)
		os.Exit(1)
	}
}

func command(ctx context.Context, args []string, out, errOut io.Writer) error {
	z := zoo{log: errOut}
	flags := flag.NewFlagSet("zoo", flag.ContinueOnError)
	flags.StringVar(&z.setpoint, "setpoint", "", "folder with this program as etcd and kube-apiserver")
	flags.StringVar(&z.upstream, "upstream", "", "folder with upstream's etcd and kube-apiserver; without it that side is left out")
	flags.BoolVar(&z.keep, "keep", false, "leave the folders, with the output of each side")
	names := flags.String("name", "", "suites, separated by commas; default: all")
	if err := flags.Parse(args); err != nil {
		return err
	}
	chosen, err := choose(recipes, *names)
	if err == nil {
		err = z.check()
	}
	if err != nil {
		return err
	}
	return z.all(ctx, chosen, out)
}

// check says what is missing before an hour is spent.
func (z zoo) check() error {
	if os.Getuid() != 0 {
		return errors.New("it needs root, for namespaces of its own")
	}
	folders := []string{z.setpoint}
	if !z.alone() {
		folders = append(folders, z.upstream)
	}
	for _, assets := range folders {
		for _, program := range []string{"etcd", "kube-apiserver"} {
			if _, err := os.Stat(filepath.Join(assets, program)); err != nil {
				return fmt.Errorf("run make zoo, which makes both folders: %w", err)
			}
		}
	}
	return nil
}

// all runs the suites, prints a row for each, and keeps what it knows after each.
func (z zoo) all(ctx context.Context, chosen []recipe, out io.Writer) (err error) {
	z.work, err = os.MkdirTemp("", "setpoint-zoo-")
	if err != nil {
		return err
	}
	if z.keep {
		fmt.Fprintln(z.log, "outputs stay in", z.work)
	} else {
		defer os.RemoveAll(z.work)
	}
	fine := true
	for _, r := range chosen {
		row := z.run(ctx, r)
		if ctx.Err() != nil {
			return ctx.Err() // half a suite is no row
		}
		fmt.Fprintln(out, row.line())
		fine = fine && row.fine()
		if err := merge(resultsFile, pageFile, []result{row}); err != nil {
			return err
		}
	}
	if !fine {
		return errNotFine
	}
	return nil
}
