package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
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
	{"pod bound to running, p50", "podstart", "bound_to_running_p50_ms", "ms", 15, 0},
	{"  p99", "podstart", "bound_to_running_p99_ms", "ms", 0, 0},
	{"100 pods created to all Ready", "crowd", "all_ready_ms", "ms", 5000, 0},
	{"  deleted to all gone", "crowd", "all_gone_ms", "ms", 2000, 0},
	{"  ConfigMap written to seen in all volumes", "crowd", "volume_max_ms", "ms", 1000, 0},
	{"  agent, with an exec probe each 10 s: CPU", "crowd", "server_cpu_pct", "%", 1, 0},
	{"  its anonymous memory", "crowd", "server_anon_mib", "MiB", 40, 0},
	{"the disk: append 4 KiB and fsync, p50", "fsync", "p50_ms", "ms", 0, 0},
	{"  p99", "fsync", "p99_ms", "ms", 0, 0},
}

// runReport reads result lines from standard input and prints them beside the goals.
func runReport(context.Context, []string) {
	found := figures{}
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		if err := found.read(in.Bytes()); err != nil {
			fatalf("%v", err)
		}
	}
	if err := in.Err(); err != nil {
		fatalf("%v", err)
	}
	found.addMultiples()
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "WHAT\tMEASURED\tGOAL\t\tBASELINE")
	for _, g := range slices.Concat(goals, clusterGoals, storeGoals) {
		fmt.Fprintln(t, g.line(found))
	}
	_ = t.Flush() // standard output
}

// figures are the values that each run had of each metric, under
// "BENCH METRIC" and "BENCH CASE CLIENTS METRIC", or watchers instead of clients.
type figures map[string][]float64

// read adds one result line. Summaries are left out: they follow from the runs.
func (f figures) read(line []byte) error {
	var result struct {
		Bench, Case string
		Run         any
		Params      struct{ Clients, Watchers int }
		Metrics     map[string]json.RawMessage
	}
	if err := json.Unmarshal(line, &result); err != nil {
		return fmt.Errorf("not a result: %q: %w", line, err)
	}
	if result.Run == "summary" {
		return nil
	}
	for name, raw := range result.Metrics {
		var value float64
		if err := json.Unmarshal(raw, &value); err != nil {
			return err
		}
		for _, key := range []string{
			result.Bench + " " + name,
			fmt.Sprintf("%s %s %d %s", result.Bench, result.Case, result.Params.Clients+result.Params.Watchers, name),
		} {
			f[key] = append(f[key], value)
		}
	}
	return nil
}

// floorMultiples are what a real server's processor time is divided by: that of a
// server which does nothing.
var floorMultiples = map[string]string{"read get 64": "floor get 64", "write create 64": "floor create 64"}

// addMultiples adds over_floor to what was measured together with the floor.
func (f figures) addMultiples() {
	const cpu = "server_cpu_us_per_op"
	for real, floor := range floorMultiples {
		above, measured := f.value(real, cpu)
		below, known := f.value(floor, cpu)
		if measured && known && below > 0 {
			f[real+" over_floor"] = []float64{above / below}
		}
	}
}

// worst behind a metric's name asks for the largest value instead of the median.
const worst = " max"

// value is the median of all runs, or their largest.
func (f figures) value(bench, metric string) (float64, bool) {
	name, largest := strings.CutSuffix(metric, worst)
	runs := slices.Sorted(slices.Values(f[bench+" "+name]))
	switch {
	case len(runs) == 0:
		return 0, false
	case largest:
		return runs[len(runs)-1], true
	default:
		return runs[len(runs)/2], true
	}
}

func (g goal) line(found figures) string {
	measured, limit, verdict, baseline := "not measured", "", "", ""
	value, ok := found.value(g.bench, g.metric)
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
