package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// result is a row, as results.json keeps it.
type result struct {
	Name, Module, Version string
	Packages              []string
	Run, Needs            string  `json:",omitempty"`
	Raised                string  `json:",omitempty"` // version of Kubernetes's libraries that the recipe asks for, with what is below them
	NotRun                string  `json:",omitempty"` // why; there are no counts then
	Specs                 int     `json:",omitempty"` // that did not skip themselves on upstream's
	PassedUpstream        int     `json:",omitempty"`
	PassedHere            int     `json:",omitempty"` // of those
	SecondsHere           float64 `json:",omitempty"`
	SecondsUpstream       float64 `json:",omitempty"`
	Alone                 bool    `json:",omitempty"` // upstream's side was left out, and has no counts
	// FailUpstream are what fails on upstream's, so that it does not count.
	FailUpstream []string     `json:",omitempty"`
	Differences  []difference `json:",omitempty"`
	Stopped      []string     `json:",omitempty"` // packages that did not come to an end here, and why
	Left         []string     `json:",omitempty"` // packages whose tests left processes running, which were ended
}

// difference is a spec that passes on upstream's, or may do so, and not here.
type difference struct{ Spec, Reason string }

// fine says whether the suite ran, and each difference has its reason.
func (r result) fine() bool {
	return r.NotRun == "" && !slices.ContainsFunc(r.Differences, func(d difference) bool { return d.Reason == "" })
}

// line is the row on a terminal.
func (r result) line() string {
	if r.NotRun != "" {
		return fmt.Sprintf("%-22s %-9s not run: %s", r.Name, r.Version, r.NotRun)
	}
	upstream := "upstream not run"
	if !r.Alone {
		upstream = fmt.Sprintf("%4d pass upstream in %6.1f s", r.PassedUpstream, r.SecondsUpstream)
	}
	line := fmt.Sprintf("%-22s %-9s %4d specs, %s, %4d of them here in %6.1f s",
		r.Name, r.Version, r.Specs, upstream, r.PassedHere, r.SecondsHere)
	for _, d := range r.Differences {
		line += "\n    differs: " + d.Spec + ": " + d.reason()
	}
	for _, stopped := range r.Stopped {
		line += "\n    here " + stopped
	}
	for _, pkg := range r.Left {
		line += "\n    " + pkg + " left processes behind, which were ended"
	}
	return line
}

func (d difference) reason() string {
	if d.Reason == "" {
		return "not explained"
	}
	return d.Reason
}

// explain gives the row's differences the reasons that its recipe has by now: a suite may take half an hour, and its reason be found later.
func (r result) explain(recipes []recipe) {
	of := slices.IndexFunc(recipes, func(known recipe) bool { return known.name == r.Name && known.version == r.Version })
	if of < 0 {
		return
	}
	for i, d := range r.Differences {
		r.Differences[i].Reason = recipes[of].reasons[d.Spec]
	}
}

// merge puts the rows into the file, in place of those of the same name, in the order of names, and makes the page of all
// rows. A row of one side does not replace one of both of the same version. Two at once: one waits for the other.
func merge(file, pageFile string, rows []result) error {
	folder, err := os.Open(filepath.Dir(file))
	if err != nil {
		return err
	}
	defer folder.Close() // ends the lock
	if err := unix.Flock(int(folder.Fd()), unix.LOCK_EX); err != nil {
		return err
	}
	all, err := load(file)
	if err != nil {
		return err
	}
	for _, row := range rows {
		if slices.ContainsFunc(all, func(old result) bool { return row.knowsLess(old) }) {
			continue
		}
		all = slices.DeleteFunc(all, func(old result) bool { return old.Name == row.Name })
		all = append(all, row)
	}
	slices.SortFunc(all, func(a, b result) int { return strings.Compare(a.Name, b.Name) })
	for _, row := range all {
		row.explain(recipes)
	}
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(file, append(text, '\n'), 0o644); err != nil {
		return err
	}
	return os.WriteFile(pageFile, []byte(page(all)), 0o644)
}

// knowsLess says whether the old row has both sides of what the new one has one of.
func (r result) knowsLess(old result) bool {
	return old.Name == r.Name && old.Version == r.Version && r.Alone && !old.Alone && old.NotRun == ""
}

// load reads the file; there are no rows if there is none.
func load(file string) (all []result, err error) {
	text, err := os.ReadFile(file)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	return all, err
}
