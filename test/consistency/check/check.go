package check

import (
	"fmt"

	"github.com/setpoint-io/setpoint/test/consistency/history"
)

// violationsLimit is how many violations a checker lists; it counts all.
const violationsLimit = 20

// A Result is what one checker found in one epoch.
type Result struct {
	Checker string
	Checked int // operations, lists, events: what the checker counts
	Bad     int // violations
	// Violations describe the first violationsLimit.
	Violations []string
}

func (r *Result) violate(format string, args ...any) {
	r.Bad++
	if len(r.Violations) < violationsLimit {
		r.Violations = append(r.Violations, fmt.Sprintf(format, args...))
	}
}

// All runs every checker on an epoch.
func All(e *history.Epoch) []Result {
	log, result := ReadLog(e)
	return []Result{
		result,
		Writes(e, log),
		Counter(e, log),
		Witness(e, log),
		Linear(e, log),
		Lists(e, log),
		Watches(e, log),
	}
}

func show(op *history.Op) string {
	text := fmt.Sprintf("%s %s of %s by client %d at server-%d [%d, %d]ns: %s", op.Level, op.Kind, op.Key, op.Client, op.Replica+1, op.Call, op.Return, op.Outcome)
	return fmt.Sprintf("%s revision %d value %q expect %d minimum %d id %s", text, op.Revision, op.Value, op.Expect, op.Minimum, op.ID)
}
