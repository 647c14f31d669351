package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"text/tabwriter"
)

// ratio is one line of a comparison of two builds.
type ratio struct{ text, bench, metric, unit string }

// ratios are what compare.sh says of two builds: rates are better when they are larger, all others when they are smaller.
var ratios = []ratio{
	{"create, 1 client", "write create 1", "ops_per_s", "/s"},
	{"  p50", "write create 1", "p50_ms", "ms"},
	{"  servers' processor time", "write create 1", "server_cpu_us_per_op", "µs"},
	{"  written to disk by all servers", "write create 1", "server_written_kib_per_op", "KiB"},
	{"create, 64 clients", "write create 64", "ops_per_s", "/s"},
	{"  p99", "write create 64", "p99_ms", "ms"},
	{"  servers' processor time", "write create 64", "server_cpu_us_per_op", "µs"},
	{"  written to disk by all servers", "write create 64", "server_written_kib_per_op", "KiB"},
	{"update, 64 clients", "write update 64", "ops_per_s", "/s"},
	{"  servers' processor time", "write update 64", "server_cpu_us_per_op", "µs"},
	{"delete, 64 clients", "write delete 64", "ops_per_s", "/s"},
	{"  servers' processor time", "write delete 64", "server_cpu_us_per_op", "µs"},
	{"GET, 64 clients", "read get 64", "ops_per_s", "/s"},
	{"  p99", "read get 64", "p99_ms", "ms"},
	{"  servers' processor time", "read get 64", "server_cpu_us_per_op", "µs"},
	{"LIST of 10,000 pods, JSON", "list json 0", "ms", "ms"},
	{"  servers' processor time", "list json 0", "server_cpu_s", "s"},
	{"  protobuf", "list protobuf 0", "ms", "ms"},
	{"  servers' processor time", "list protobuf 0", "server_cpu_s", "s"},
	{"1,000 watchers: write answered to event seen, p99", "watch fanout 1000", "ack_to_event_p99_ms", "ms"},
	{"  servers' processor time, 100 % is one core", "watch fanout 1000", "server_cpu_pct", "%"},
	{"5,000 pods bound on 100 nodes", "sched pods 0", "pods_per_s", "/s"},
	{"  servers' processor time", "sched pods 0", "server_cpu_s", "s"},
	{"idle: processor of all servers, 100 % is one core", "idle", "server_cpu_pct", "%"},
	{"  their anonymous memory", "idle", "server_anon_mib", "MiB"},
	{"memory with 10,000 pods, anonymous", "memory 10000 0", "anon_after_mib", "MiB"},
	{"the end of 10,000 owned pods: processor time", "collect owned pods 0", "server_cpu_s", "s"},
	{"the end of a namespace of 10,000 objects: processor time", "collect namespace 0", "server_cpu_s", "s"},
	{"statuses of 1,000 Deployments: processor time", "statuses", "server_cpu_s", "s"},
	{"other load beside creates, 100 % is one core", "write create 64", "other_cpu_pct", "%"},
}

// runRatios reads results of two builds from standard input and prints the second beside the first.
func runRatios(_ context.Context, args []string) {
	if len(args) != 2 {
		fatalf("usage: bench ratios OLD NEW <RESULTS: the two names of -target")
	}
	byTarget, err := readTargets(os.Stdin)
	if err != nil {
		fatalf("%v", err)
	}
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 3, ' ', 0)
	fmt.Fprintf(t, "WHAT\t%s\t%s\tRATIO\tOF EACH PAIR\n", args[0], args[1])
	for _, r := range ratios {
		if line, measured := r.line(byTarget[args[0]], byTarget[args[1]]); measured {
			fmt.Fprintln(t, line)
		}
	}
	_ = t.Flush() // standard output
}

// readTargets reads result lines, and keeps the figures of each target in the order of its runs.
func readTargets(in io.Reader) (map[string]figures, error) {
	byTarget := map[string]figures{}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var of struct{ Target string }
		if err := json.Unmarshal(lines.Bytes(), &of); err != nil {
			return nil, fmt.Errorf("not a result: %q: %w", lines.Bytes(), err)
		}
		if byTarget[of.Target] == nil {
			byTarget[of.Target] = figures{}
		}
		if err := byTarget[of.Target].read(lines.Bytes()); err != nil {
			return nil, err
		}
	}
	return byTarget, lines.Err()
}

// line has both medians, the median of the ratios of the runs that stood beside each other, the smallest and the largest of them.
func (r ratio) line(before, after figures) (text string, measured bool) {
	key := r.bench + " " + r.metric
	pairs := pairRatios(before[key], after[key])
	if len(pairs) == 0 {
		return "", false
	}
	was, _ := before.value(r.bench, r.metric)
	is, _ := after.value(r.bench, r.metric)
	return fmt.Sprintf("%s\t%.4g %s\t%.4g %s\t%.2f\t%.2f to %.2f", r.text, was, r.unit, is, r.unit,
		middle(pairs), pairs[0], pairs[len(pairs)-1]), true
}

// pairRatios are sorted. A run without a partner is left out, and so is one beside which nothing was measured.
func pairRatios(before, after []float64) []float64 {
	var pairs []float64
	for i := range min(len(before), len(after)) {
		if before[i] > 0 {
			pairs = append(pairs, after[i]/before[i])
		}
	}
	slices.Sort(pairs)
	return pairs
}

// middle is the median of sorted values, between the middle two if their number is even.
func middle(sorted []float64) float64 {
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}
