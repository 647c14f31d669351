package admin

import (
	"context"
	"errors"
	"testing"

	"github.com/setpoint-io/setpoint/controllers/reconcile/numbers"
)

// TestAnAnswerHasTheLoopsOfItsOrder, or tells that they have ended meanwhile.
func TestAnAnswerHasTheLoopsOfItsOrder(t *testing.T) {
	queues := map[string]bool{"deployment": true}
	loops, err := meant([]numbers.Report{{Queue: "active"}, {Queue: "deployment"}}, queues)
	if err != nil || len(loops) != 1 || loops[0].Queue != "deployment" {
		t.Errorf("%v, %v", loops, err)
	}
	if loops, err := meant([]numbers.Report{{Queue: "active"}}, queues); !errors.Is(err, ErrLoopEnded) {
		t.Errorf("of an ended loop: %v, %v", loops, err)
	}
}

// TestOnlyAStepWithoutAnAnswerIsInDoubt: other orders can be repeated, and a refusal is an answer.
func TestOnlyAStepWithoutAnAnswerIsInDoubt(t *testing.T) {
	for name, c := range map[string]struct {
		order string
		err   error
		want  bool
	}{
		"no answer": {StepLoop, context.DeadlineExceeded, true},
		"refused":   {StepLoop, &Refusal{StatusCode: 409}, false},
		"done":      {StepLoop, nil, false},
		"pause":     {PauseLoop, context.DeadlineExceeded, false},
	} {
		if err := withDoubt(PaceOrder{Order: c.order}, c.err); errors.Is(err, ErrStepUnknown) != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}
