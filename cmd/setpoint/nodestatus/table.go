package nodestatus

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
)

// unknown stands for what nobody told.
const unknown = "-"

// Print prints the tables that have a row: a screen without trouble is short.
func Print(w io.Writer, nodes []Report, withPods bool, now time.Time) error {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "NODE\tREADY\tPODS\tCPU\tMEMORY\tDISK\tAGE")
	for _, n := range nodes {
		fmt.Fprintf(t, "%s\t%s\t%d of %d\t%s\t%s\t%s\t%s\n", n.Name, readyOf(n), len(n.Pods), n.PodsMax,
			usedCell(n.CPU, millicoresCell), usedCell(n.Memory, mebibytesCell), usedCell(n.Disk, mebibytesCell), since(&n.Created, now))
	}
	for _, n := range nodes {
		if n.Error != "" {
			fmt.Fprintf(t, "\n%s does not tell what it uses: %s\n", n.Name, n.Error)
		}
	}
	printPressure(t, nodes, now)
	printWaiting(t, nodes, now)
	if withPods {
		printOthers(t, nodes)
		printNodePods(t, nodes, now)
	}
	return t.Flush()
}

func readyOf(n Report) string {
	if n.Cordoned {
		return n.Ready + ",cordoned"
	}
	return n.Ready
}

func printPressure(t io.Writer, nodes []Report, now time.Time) {
	if !slices.ContainsFunc(nodes, func(n Report) bool { return len(n.Pressure) > 0 }) {
		return
	}
	fmt.Fprintln(t, "\nPRESSURE\tNODE\tSTATUS\tSINCE\tREASON\tMESSAGE")
	for _, n := range nodes {
		for _, p := range n.Pressure {
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", p.Condition, n.Name, p.Status, since(&p.Since, now), p.Reason, p.Message)
		}
	}
}

func printWaiting(t io.Writer, nodes []Report, now time.Time) {
	if !slices.ContainsFunc(nodes, func(n Report) bool { return len(n.Waiting) > 0 }) {
		return
	}
	fmt.Fprintln(t, "\nWAITING\tCONTAINER\tNODE\tIMAGE\tSINCE\tREASON\tMESSAGE")
	for _, n := range nodes {
		for _, c := range n.Waiting {
			fmt.Fprintf(t, "%s/%s\t%s\t%s\t%s\t%s\t%s\t%s\n",
				c.Namespace, c.Pod, c.Container, n.Name, c.Image, since(c.Since, now), c.Reason, cmp.Or(c.Message, unknown))
		}
	}
}

func printOthers(t io.Writer, nodes []Report) {
	if !slices.ContainsFunc(nodes, func(n Report) bool { return len(n.Others) > 0 }) {
		return
	}
	fmt.Fprintln(t, "\nPODS OF\tPOD CIDR\tADDRESS\tBY\tBECAUSE")
	for _, n := range nodes {
		for _, o := range n.Others {
			printWays(t, o)
		}
	}
}

// printWays has a line for each way: one, unless the second range is reached by another.
func printWays(t io.Writer, o Other) {
	ranges := strings.Join(o.PodCIDRs, ",")
	if o.Second != nil {
		ranges = o.PodCIDR
	}
	fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", o.Node, cmp.Or(ranges, unknown), cmp.Or(o.Address, unknown), o.Way, o.Why)
	if o.Second != nil {
		fmt.Fprintf(t, "\t%s\t\t%s\t%s\n", o.PodCIDRs[1], o.Second.Way, o.Second.Why)
	}
}

func printNodePods(t io.Writer, nodes []Report, now time.Time) {
	fmt.Fprintln(t, "\nPOD\tPHASE\tCPU\tMEMORY\tDISK\tRESTARTS\tSINCE")
	for _, n := range nodes {
		for _, p := range n.Pods {
			fmt.Fprintf(t, "%s/%s\t%s\t%s\t%s\t%s\t%d\t%s\n", p.Namespace, p.Name, p.Phase,
				cell(p.CPUMillicores, millicoresCell), cell(p.MemoryBytes, mebibytesCell), cell(p.DiskBytes, mebibytesCell),
				p.Restarts, since(p.Since, now))
		}
	}
}

func usedCell(u Used, format func(int64) string) string {
	if u.Used == nil && u.Of == nil {
		return unknown
	}
	return cell(u.Used, format) + " of " + cell(u.Of, format)
}

func cell(n *int64, format func(int64) string) string {
	if n == nil {
		return unknown
	}
	return format(*n)
}

func millicoresCell(n int64) string { return fmt.Sprintf("%dm", n) }

func mebibytesCell(n int64) string { return fmt.Sprintf("%dMi", n>>20) }

func since(t *time.Time, now time.Time) string {
	if t == nil || t.IsZero() {
		return unknown
	}
	return duration.HumanDuration(now.Sub(*t))
}
