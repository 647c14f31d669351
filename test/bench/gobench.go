package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
)

// storeGoals are the figures of benchmarks that the product brings along (store, router), and of a
// restart with many objects; store.sh measures them.
var storeGoals = []goal{
	{"store alone, 256 writers of 1 KiB, as multiple of F (≥ 4, aim 8)", "store", "xF", "F", 0, 0},
	{"  writes", "store", "writes/s", "/s", 0, 0},
	{"  F: the disk's appends of 4 KiB with fsync, 1/p50", "store", "F/s", "/s", 0, 0},
	{"  processor time of a write, three replicas", "store", "cpu-us/write", "µs", 0, 0},
	{"while a snapshot of 300 MiB is written: commit p99", "snapshot", "snapshot-p99-ms", "ms", 50, 0},
	{"  commit p50", "snapshot", "snapshot-p50-ms", "ms", 0, 0},
	{"  longest apply", "snapshot", "apply-max-ms", "ms", 5, 0},
	{"  beside it: commit p99", "snapshot", "calm-p99-ms", "ms", 0, 0},
	{"  heap of a replica", "snapshot", "MiB/replica", "MiB", 0, 0},
	{"router, 5 Ingresses: requests/s as multiple of a bare httputil.ReverseProxy (≥ 0.9)", "router", "x-bare", "x", 0, 0},
	{"  5,000 Ingresses", "router", "x-bare-5000-hosts", "x", 0, 0},
	{"  processor time of a request as multiple of the bare one's, 5 Ingresses", "router", "cpu-x-bare", "x", 0, 0},
	{"  5,000 Ingresses", "router", "cpu-x-bare-5000-hosts", "x", 0, 0},
	{"  requests/s, client and backend on the same machine", "router", "req/s", "/s", 0, 0},
	{"restart with 200,000 objects, exec to /readyz", "restart", "readyz_ms", "ms", 3000, 0},
	{"  to first linearizable LIST of 500", "restart", "first_list_ms", "ms", 3000, 0},
	{"  to first ConfigMap", "restart", "first_create_ms", "ms", 0, 0},
}

var gobenchLine = regexp.MustCompile(`^Benchmark(\w+?)(?:-\d+)?\s+\d+\s+(.*)`)

// runGobench turns the output of Go's benchmarks into result lines. The runs of one
// benchmark are one case; its name is that of the measurement.
func runGobench(context.Context, []string) {
	runs, err := readGobench(bufio.NewScanner(os.Stdin))
	if err != nil {
		fatalf("%v", err)
	}
	for name, ms := range runs {
		emit(name, "go", "setpoint", nil, ms)
	}
}

// readGobench returns the runs of each benchmark, their figures under their units.
func readGobench(in *bufio.Scanner) (map[string][]metrics, error) {
	runs := map[string][]metrics{}
	for in.Scan() {
		parts := gobenchLine.FindStringSubmatch(in.Text())
		if parts == nil {
			continue
		}
		m := metrics{}
		fields := strings.Fields(parts[2])
		for i := 0; i+1 < len(fields); i += 2 {
			value, err := strconv.ParseFloat(fields[i], 64)
			if err != nil {
				return nil, fmt.Errorf("benchmark line %q: %w", in.Text(), err)
			}
			m[fields[i+1]] = value
		}
		name := strings.ToLower(parts[1])
		runs[name] = append(runs[name], m)
	}
	if len(runs) == 0 {
		return nil, fmt.Errorf("no benchmark in the input")
	}
	return runs, in.Err()
}
