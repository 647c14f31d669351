package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"text/tabwriter"
)

// goal is one line of the report: a figure, what it should be, and what the same
// harness measured of a control plane made of the upstream parts in one process.
type goal struct {
	text, bench, metric, unit string
	atMost, baseline          float64 // 0: none
}

var goals = []goal{
	{"exec to /readyz, empty directory", "coldstart", "readyz_ms", "ms", 500, 2483},
	{"exec to first ConfigMap", "coldstart", "first_create_ms", "ms", 500, 2487},
	{"idle memory (RSS), dev with its agent", "idle", "server_rss_mib", "MiB", 140, 309},
	{"  of which anonymous", "idle", "server_anon_mib", "MiB", 60, 0},
	{"idle CPU, 100 % is one core", "idle", "server_cpu_pct", "%", 0, 0},
	{"pod deleted to successor exists, p50", "react", "delete_to_exists_p50_ms", "ms", 10, 20},
	{"  p99", "react", "delete_to_exists_p99_ms", "ms", 0, 0},
	{"pod deleted to successor bound, p50", "react", "delete_to_bound_p50_ms", "ms", 15, 27},
	{"  p99", "react", "delete_to_bound_p99_ms", "ms", 0, 0},
	{"pod bound to running, p50", "podstart", "bound_to_running_p50_ms", "ms", 100, 0},
	{"  p99", "podstart", "bound_to_running_p99_ms", "ms", 0, 0},
	{"the disk: append 4 KiB and fsync, p50", "fsync", "p50_ms", "ms", 0, 0},
	{"  p99", "fsync", "p99_ms", "ms", 0, 0},
}

// runReport reads result lines from standard input and prints them beside the goals.
func runReport(context.Context, []string) {
	figures := map[string]float64{}
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		if err := readFigures(in.Bytes(), figures); err != nil {
			fatalf("%v", err)
		}
	}
	if err := in.Err(); err != nil {
		fatalf("%v", err)
	}
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "WHAT\tMEASURED\tGOAL\t\tBASELINE")
	for _, g := range append(goals, storeGoals...) {
		fmt.Fprintln(t, g.line(figures))
	}
	_ = t.Flush() // standard output
}

// readFigures keeps the median of repeated runs, else the run itself.
func readFigures(line []byte, figures map[string]float64) error {
	var result struct {
		Bench   string
		Run     any
		Metrics map[string]json.RawMessage
	}
	if err := json.Unmarshal(line, &result); err != nil {
		return fmt.Errorf("not a result: %q: %w", line, err)
	}
	for name, raw := range result.Metrics {
		var value float64
		if result.Run == "summary" {
			var s spread
			if err := json.Unmarshal(raw, &s); err != nil {
				return err
			}
			value = s.Median
		} else if err := json.Unmarshal(raw, &value); err != nil {
			return err
		}
		figures[result.Bench+" "+name] = value
	}
	return nil
}

func (g goal) line(figures map[string]float64) string {
	measured, limit, verdict, baseline := "not measured", "", "", ""
	value, ok := figures[g.bench+" "+g.metric]
	if ok {
		measured = fmt.Sprintf("%.1f %s", value, g.unit)
	}
	if g.atMost > 0 {
		limit = fmt.Sprintf("≤ %g %s", g.atMost, g.unit)
		if ok && value > g.atMost {
			verdict = "missed"
		} else if ok {
			verdict = "met"
		}
	}
	if g.baseline > 0 {
		baseline = fmt.Sprintf("%g %s", g.baseline, g.unit)
	}
	return fmt.Sprintf("%s\t%s\t%s\t%s\t%s", g.text, measured, limit, verdict, baseline)
}
