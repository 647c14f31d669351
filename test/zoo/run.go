package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// zoo is where and on what the suites run.
type zoo struct {
	setpoint, upstream string // folders for KUBEBUILDER_ASSETS
	work               string // with a folder for each suite
	keep               bool   // the folders stay
	log                io.Writer
}

// alone says that upstream's side is left out.
func (z zoo) alone() bool { return z.upstream == "" }

// run runs one suite on both sides.
func (z zoo) run(ctx context.Context, r recipe) (row result) {
	row = result{Name: r.name, Module: r.module, Version: r.version, Packages: r.packages, Run: r.run, Needs: r.needs, Alone: z.alone()}
	row.Raised = r.kubernetes()
	folder := filepath.Join(z.work, r.name)
	if !z.keep {
		defer os.RemoveAll(folder)
	}
	module := filepath.Join(folder, "module")
	if err := fetch(ctx, r, module); err != nil {
		row.NotRun = "cannot be fetched: " + err.Error()
		return row
	}
	both := newPair()
	for i, pkg := range r.packages {
		err := z.runPackage(ctx, r, module, filepath.Join(folder, strconv.Itoa(i)), pkg, both)
		if err != nil {
			row.NotRun = pkg + " " + err.Error()
			return row
		}
	}
	if z.alone() {
		both.here.fillAlone(&row, r)
	} else {
		both.fill(&row, r)
	}
	return row
}

// runPackage compiles a package's tests and adds what they do on either side.
func (z zoo) runPackage(ctx context.Context, r recipe, module, folder, pkg string, both *pair) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	program := filepath.Join(folder, "program")
	if err := compile(ctx, r, module, pkg, program); err != nil {
		return err
	}
	knowsGinkgo, err := usesGinkgo(ctx, r, module, pkg)
	if err != nil {
		return err
	}
	for _, s := range []struct {
		side         *side
		name, assets string
	}{{both.upstream, "upstream", z.upstream}, {both.here, "here", z.setpoint}} {
		if s.assets == "" {
			continue
		}
		t := trial{
			program: program, module: module, dir: filepath.Join(module, pkg), folder: filepath.Join(folder, s.name),
			assets: s.assets, ginkgo: knowsGinkgo, recipe: r,
		}
		came, err := t.run(ctx)
		if err != nil {
			return err
		}
		fmt.Fprintf(z.log, "%s %s %s: %d specs, %d failed, %.0f s %s\n",
			r.name, pkg, s.name, len(came.specs), came.specs.failed(), came.took.Seconds(), came.why)
		s.side.add(pkg, came)
	}
	return nil
}

// side is what a suite did on one of the two.
type side struct {
	specs specs // by "package: spec"
	took  time.Duration
	why   []string // it did not come to an end
	left  []string // packages that left processes running
}

// pair is what a suite did on both.
type pair struct{ here, upstream *side }

func newPair() *pair { return &pair{here: &side{specs: specs{}}, upstream: &side{specs: specs{}}} }

func (s *side) add(pkg string, came outcome) {
	for name, ended := range came.specs {
		s.specs.add(pkg+": "+name, ended)
	}
	s.took += came.took
	if came.why != "" {
		s.why = append(s.why, pkg+" "+came.why)
	}
	if came.left {
		s.left = append(s.left, pkg)
	}
}

// fill counts: only what passes upstream counts here.
func (p *pair) fill(row *result, r recipe) {
	if len(p.upstream.why) > 0 {
		row.NotRun = "on upstream's " + strings.Join(p.upstream.why, "; ")
		return
	}
	row.SecondsHere, row.SecondsUpstream = seconds(p.here.took), seconds(p.upstream.took)
	for _, name := range slices.Sorted(maps.Keys(p.upstream.specs)) {
		p.count(row, r, name)
	}
	if row.PassedUpstream < r.atLeast {
		row.NotRun = fmt.Sprintf("%d specs pass on upstream's; the recipe expects %d", row.PassedUpstream, r.atLeast)
	}
	row.Stopped, row.Left = p.here.why, p.here.left
}

// fillAlone counts what does not skip itself here, where upstream's side was left out.
func (s *side) fillAlone(row *result, r recipe) {
	if len(s.why) > 0 {
		row.NotRun = "here " + strings.Join(s.why, "; ")
		return
	}
	row.SecondsHere, row.Left = seconds(s.took), s.left
	for _, name := range slices.Sorted(maps.Keys(s.specs)) {
		switch s.specs[name] {
		case passed:
			row.PassedHere++
		case failed:
			row.Differences = append(row.Differences, difference{Spec: name, Reason: r.reasons[name]})
		}
	}
	row.Specs = row.PassedHere + len(row.Differences)
	if row.Specs < r.atLeast {
		row.NotRun = fmt.Sprintf("%d specs ran; the recipe expects %d", row.Specs, r.atLeast)
	}
}

func (p *pair) count(row *result, r recipe, name string) {
	switch p.upstream.specs[name] {
	case skipped:
		return
	case failed:
		row.Specs++
		row.FailUpstream = append(row.FailUpstream, name)
		return
	}
	row.Specs++
	row.PassedUpstream++
	if p.here.specs[name] == passed {
		row.PassedHere++
		return
	}
	row.Differences = append(row.Differences, difference{Spec: name, Reason: r.reasons[name]})
}

// seconds has a tenth of a second.
func seconds(d time.Duration) float64 {
	return float64(d.Round(100*time.Millisecond)) / float64(time.Second)
}
