package consistency

import (
	"strings"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/test/consistency/check"
	"github.com/setpoint-io/setpoint/test/consistency/history"
)

func TestReport(t *testing.T) {
	second := int64(time.Second)
	e := &history.Epoch{Namespace: "epoch-1"}
	for _, at := range []int64{1, 2, 5, 6} {
		e.Ops = append(e.Ops, history.Op{Kind: history.Update, Outcome: history.OK, Return: at * second})
	}
	report := &Report{Seed: 7, Faults: []history.Fault{{Name: "kill-leader", Start: 2*second + 1}, {Name: "ring", Start: 4 * second}}}
	report.add(e, []check.Result{{Checker: "one", Checked: 4, Bad: 1, Violations: []string{"planted"}}})
	report.find("found %d", 3)
	if report.Bad() != 2 || report.Total() != 4 {
		t.Errorf("%d bad of %d", report.Bad(), report.Total())
	}
	text := report.String()
	for _, want := range []string{"operations  4", "faults      2 of 2 kinds", "p50 3s, max 3s", "epoch-1: planted", "found 3", "violations  2"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}
