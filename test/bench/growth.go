package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
)

// growth is the cost of one step at several sizes.
type growth struct {
	step   string
	nodes  []float64
	costs  []float64 // seconds of processor time
	things []float64
	anon   []float64 // MiB at its end
}

// runGrowth prints, for each step, what it cost at each size, for each thing that it made, and the power of the number of nodes with which
// that grows: 0 where cost follows what changes.
func runGrowth(context.Context, []string) {
	steps, err := readGrowth(os.Stdin)
	if err != nil {
		fatalf("%v", err)
	}
	if len(steps) == 0 {
		fatalf("no results of scale on standard input")
	}
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 3, ' ', 0)
	fmt.Fprintf(t, "µs of processor time for each thing, by nodes\t%s\tgrows with nodes to the\n", tabbed(steps[0].nodes))
	for _, g := range steps {
		each := make([]float64, len(g.costs))
		for i := range each {
			each[i] = g.costs[i] * 1e6 / max(g.things[i], 1)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\n", g.step, tabbed(each), power(g.nodes, each))
	}
	last := steps[len(steps)-1]
	fmt.Fprintf(t, "anonymous memory at the end, MiB\t%s\t%s\n", tabbed(last.anon), power(last.nodes, last.anon))
	if err := t.Flush(); err != nil {
		fatalf("%v", err)
	}
}

func tabbed(values []float64) string {
	words := make([]string, len(values))
	for i, v := range values {
		words[i] = fmt.Sprintf("%.0f", v)
	}
	return strings.Join(words, "\t")
}

// readGrowth reads result lines; steps keep their order, sizes that of the lines.
func readGrowth(in io.Reader) (steps []growth, err error) {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		var l struct {
			Bench, Case string
			Params      struct{ Nodes float64 }
			Metrics     map[string]float64
		}
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			return nil, err
		}
		if l.Bench != "scale" {
			continue
		}
		i := slices.IndexFunc(steps, func(g growth) bool { return g.step == l.Case })
		if i < 0 {
			i, steps = len(steps), append(steps, growth{step: l.Case})
		}
		g := &steps[i]
		g.nodes, g.costs = append(g.nodes, l.Params.Nodes), append(g.costs, l.Metrics["server_cpu_s"])
		g.things, g.anon = append(g.things, l.Metrics["things"]), append(g.anon, l.Metrics["server_anon_mib"])
	}
	return steps, lines.Err()
}

// power is the b of the curve y = a·xᵇ that lies nearest to the points: the slope of the line through their logarithms (least squares).
// Points without cost are left out; points of fewer than two sizes have none.
func power(xs, ys []float64) string {
	var n, sx, sy, sxx, sxy float64
	for i := range xs {
		if xs[i] <= 0 || ys[i] <= 0 {
			continue
		}
		x, y := math.Log(xs[i]), math.Log(ys[i])
		n, sx, sy, sxx, sxy = n+1, sx+x, sy+y, sxx+x*x, sxy+x*y
	}
	spread := n*sxx - sx*sx
	if n < 2 || spread == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", math.Round((n*sxy-sx*sy)/spread*100)/100+0) // no -0
}
