package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

const (
	head = `# Software that runs on it

Suites that others wrote for their own operators and clients, as ` + "`make zoo`" + ` saw them: the same test programs, unchanged, on this program in
the place of [etcd and kube-apiserver](go-test.md), and on upstream's kube-apiserver and etcd. Only what passes on upstream's counts.
The page is made by the command from ` + "`test/zoo/results.json`" + `; a suite that has not run has no counts. Times are of whatever the machine
did beside it, and hold the suite's own waiting; the two sides ran one after the other. Where upstream's side says "not run" it was left
out (` + "`ALONE=1`" + `), and what does not skip itself here counts. Where a version of k8s.io's libraries stands below, the suite was compiled with
that release and not with the older one that its ` + "`go.mod`" + ` asks for, and with newer versions of what is below them, so that suites
share what is compiled.
`

	columns = `
| software | version | specs | pass here | pass upstream | seconds here | seconds upstream | what differs |
|---|---|---|---|---|---|---|---|
`
	nothingYet = "\nNo suite has run on both sides yet.\n"
)

// page is docs/software.md.
func page(rows []result) string {
	if len(rows) == 0 {
		return head + nothingYet
	}
	var b strings.Builder
	b.WriteString(head + columns)
	for _, r := range withNotHad(rows) {
		b.WriteString(tableRow(r))
	}
	b.WriteString("\n## What ran\n\n")
	for _, r := range rows {
		b.WriteString(item(r))
	}
	return b.String()
}

// withNotHad adds the suites that could not be had, in the order of names.
func withNotHad(rows []result) []result {
	all := slices.Clone(rows)
	for _, gone := range notHad {
		if !slices.ContainsFunc(rows, func(r result) bool { return r.Name == gone.Name }) {
			all = append(all, gone)
		}
	}
	slices.SortFunc(all, func(a, b result) int { return strings.Compare(a.Name, b.Name) })
	return all
}

func tableRow(r result) string {
	if r.NotRun != "" {
		return fmt.Sprintf("| %s | %s | not run | | | | | %s |\n", r.Name, r.Version, escape(r.NotRun))
	}
	passUpstream, secondsUpstream := "not run", "not run"
	if !r.Alone {
		passUpstream, secondsUpstream = strconv.Itoa(r.PassedUpstream), fmt.Sprintf("%.1f", r.SecondsUpstream)
	}
	return fmt.Sprintf("| %s | %s | %d | %d | %s | %.1f | %s | %s |\n",
		r.Name, r.Version, r.Specs, r.PassedHere, passUpstream, r.SecondsHere, secondsUpstream, escape(r.remark()))
}

// remark is the last column.
func (r result) remark() string {
	var told []string
	if n := len(r.Differences); n > 0 {
		told = append(told, fmt.Sprintf("%d, below", n))
	}
	if n := len(r.FailUpstream); n > 0 {
		told = append(told, fmt.Sprintf("%d fail upstream", n))
	}
	if len(r.Left) > 0 {
		told = append(told, "leaves processes behind")
	}
	return strings.Join(told, "; ")
}

// item tells of what the suite is, and each difference. Packages begin with "./", since they are not of this repository.
func item(r result) string {
	var told []string
	for _, pkg := range r.Packages {
		told = append(told, "`"+below(pkg)+"`")
	}
	packages := strings.Join(told, ", ")
	if r.Run != "" {
		packages += ", tests `" + r.Run + "`"
	}
	text := fmt.Sprintf("- **%s**: `%s`: %s.", r.Name, r.Module, packages)
	if r.Raised != "" {
		text += " k8s.io's libraries " + r.Raised + "."
	}
	if r.Needs != "" {
		text += " " + r.Needs + "."
	}
	text += "\n"
	for _, d := range r.Differences {
		text += "  - " + d.Spec + ": " + d.reason() + "\n"
	}
	return text
}

// escape keeps a cell one cell.
func escape(cell string) string { return strings.ReplaceAll(cell, "|", `\|`) }
