package consistency

import (
	"strings"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/test/consistency/history"
)

// TestBound: a long fault of one server during which nobody is served is found, and one that is got over is not; nor is one of all.
func TestBound(t *testing.T) {
	second := int64(time.Second)
	for name, c := range map[string]struct {
		fault   string
		acks    []int64
		refused int
		gapMax  time.Duration
		want    string
	}{
		"got over":        {"pause-leader", []int64{1, 12, 20, 40}, 0, 0, ""},
		"held up":         {"pause-leader", []int64{1, 31, 40}, 0, 0, "no write was acknowledged"},
		"of all":          {"kill-all", []int64{1, 31, 40}, 0, 0, ""},
		"refused":         {"pause-leader", []int64{1, 12, 40}, 3, 0, "3 of 4 operations were refused"},
		"longer than gap": {"pause-leader", []int64{1, 12, 40}, 0, 2 * time.Second, "for 28s (p99), more than 2s"},
	} {
		e := &history.Epoch{Namespace: "epoch-1"}
		for _, at := range c.acks {
			e.Ops = append(e.Ops, history.Op{Kind: history.Update, Outcome: history.OK, Call: at*second - 1, Return: at * second})
		}
		for range c.refused {
			e.Ops = append(e.Ops, history.Op{Kind: history.Get, Outcome: history.Refused, Call: 12 * second, Return: 13 * second})
		}
		report := &Report{Faults: []history.Fault{{Name: c.fault, Start: 10 * second, Stop: 30 * second}}}
		report.add(e, nil)
		report.bound(c.gapMax)
		if found := strings.Join(report.Findings, "\n"); (c.want == "") != (found == "") || !strings.Contains(found, c.want) {
			t.Errorf("%s: found %q, want %q", name, found, c.want)
		}
		if table := report.costTable(); !strings.Contains(table, c.fault) {
			t.Errorf("%s: no line of it in\n%s", name, table)
		}
	}
}
