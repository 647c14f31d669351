package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/controllers/reconcile/numbers"
	"github.com/setpoint-io/setpoint/controllers/reconcile/pace"
)

// The orders about control loops.
const (
	PauseLoop  = "pause"
	StepLoop   = "step"
	ResumeLoop = "resume"
)

// errNoLessons refuses on a cluster that others may depend on.
var errNoLessons = errors.New("this cluster's loops cannot be held: only those of a cluster to learn on can, such as 'setpoint dev' runs. " +
	"Look at them with 'setpoint loops -w'")

// errNoLoop is for names that no loop has, and errLoops for one that several have.
var (
	errNoLoop  = errors.New("no loop that acts now has this name")
	errLoops   = errors.New("it has several queues, step one of them")
	errOrder   = errors.New("want the order pause, step or resume")
	errNobody  = errors.New("no server leads now, so no loop acts")
	errAllOnly = errors.New("name one loop to step")
)

var (
	// ErrLoopEnded: the loop ended while it was ordered something.
	ErrLoopEnded = errors.New("the loop has ended since, and the order with it: try again")
	// ErrStepUnknown: a step was sent and not answered. Sent again, it could allow a second pass.
	ErrStepUnknown = errors.New("it is not known whether the step was ordered: look with 'setpoint loops'")
)

// PaceOrder pauses a loop, lets one pass of it through, or has it go on.
type PaceOrder struct {
	Order string `json:"order"`
	// Loop is the name of a controller or of a queue; empty: all, which cannot be stepped.
	Loop string `json:"loop,omitempty"`
	// Here is from another server, which has found that this one leads.
	Here bool `json:"here,omitempty"`
}

// PaceAnswer tells of the loops that were meant, after the order.
type PaceAnswer struct {
	// Server is that on which they act, Next the number of the first pass that ends from then on.
	Server string `json:"server"`
	Next   uint64 `json:"next"`
	// Loops are those that were meant.
	Loops []numbers.Report `json:"loops"`
}

func (a *Admin) servePace(w http.ResponseWriter, r *http.Request) {
	var order PaceOrder
	if err := ReadOrder(http.MaxBytesReader(w, r.Body, changeBodyBytes), &order); err != nil || r.Method != http.MethodPost {
		http.Error(w, fmt.Sprintf("want POST with an order about a loop: %v", err), http.StatusBadRequest)
		return
	}
	answer, err := a.hold(r.Context(), order)
	if err != nil {
		http.Error(w, whyNot(err), paceStatus(err))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer) // the client is gone if this fails
}

// whyNot is what the server said on which the loops act.
func whyNot(err error) string {
	if refused := (*Refusal)(nil); errors.As(err, &refused) {
		return refused.Error()
	}
	return err.Error()
}

func paceStatus(err error) int {
	refused := (*Refusal)(nil)
	switch {
	case errors.As(err, &refused):
		return refused.StatusCode
	case errors.Is(err, errOrder), errors.Is(err, errLoops), errors.Is(err, errAllOnly):
		return http.StatusBadRequest
	case errors.Is(err, errNoLoop):
		return http.StatusNotFound
	case errors.Is(err, errNoLessons), errors.Is(err, pace.ErrNotPaused), errors.Is(err, pace.ErrSteps):
		return http.StatusConflict
	}
	return http.StatusServiceUnavailable
}

// hold carries out an order where the loops act.
func (a *Admin) hold(ctx context.Context, order PaceOrder) (PaceAnswer, error) {
	if a.config.Pace == nil {
		return PaceAnswer{}, errNoLessons
	}
	if !order.Here {
		answer, forwarded := PaceAnswer{}, order
		forwarded.Here = true
		if elsewhere, err := a.askLeader(ctx, pacePath, forwarded, &answer); elsewhere {
			return answer, withDoubt(order, err)
		}
	}
	return a.holdHere(order)
}

// withDoubt says of a step without an answer that it may have been ordered: a second one would allow another pass.
func withDoubt(order PaceOrder, err error) error {
	if err == nil || order.Order != StepLoop || errors.As(err, new(*Refusal)) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrStepUnknown, err)
}

func (a *Admin) holdHere(order PaceOrder) (PaceAnswer, error) {
	log := a.config.Log.Status()
	switch {
	case leads(log):
	case order.Here:
		return PaceAnswer{}, errDeposed
	default:
		return PaceAnswer{}, errNobody
	}
	queues, err := a.queuesOf(order)
	if err != nil {
		return PaceAnswer{}, err
	}
	_, next, _ := a.config.Numbers.PassesSince(OfNoPass)
	for queue := range queues {
		if err := a.config.Pace.Order(log.Term, queue, order.of); err != nil {
			return PaceAnswer{}, fmt.Errorf("%s: %w", queue, err)
		}
	}
	a.config.Logger.Info("control loops: ordered", "order", order.Order, "loop", order.Loop)
	loops, err := meant(a.loopsHere(a.config.Storage.Now()), queues)
	return PaceAnswer{Server: log.Name, Next: next, Loops: loops}, err
}

// meant are the loops that an order was for, as they are after it.
func meant(all []numbers.Report, queues map[string]bool) (loops []numbers.Report, err error) {
	for i := range all {
		if queues[all[i].Queue] {
			loops = append(loops, all[i])
		}
	}
	if len(loops) == 0 {
		return nil, ErrLoopEnded
	}
	return loops, nil
}

// of has a gate carry out the order.
func (o PaceOrder) of(gate *pace.Gate) error {
	switch o.Order {
	case PauseLoop:
		gate.Pause()
	case ResumeLoop:
		gate.Resume()
	case StepLoop:
		return gate.Step()
	default:
		return errOrder
	}
	return nil
}

// queuesOf are those that an order means. A queue's name means that queue, also if its controller has the same.
func (a *Admin) queuesOf(order PaceOrder) (map[string]bool, error) {
	found := map[string]bool{}
	var names []string
	for _, loop := range a.loopsHere(a.config.Storage.Now()) {
		if loop.Queue == order.Loop {
			return map[string]bool{loop.Queue: true}, nil
		}
		if order.Loop == "" || loop.Loop == order.Loop {
			found[loop.Queue] = true
			names = append(names, loop.Queue)
		}
	}
	switch {
	case len(found) == 0:
		return nil, fmt.Errorf("%q: %w: 'setpoint loops' lists them", order.Loop, errNoLoop)
	case order.Order == StepLoop && order.Loop == "":
		return nil, errAllOnly
	case order.Order == StepLoop && len(found) > 1:
		return nil, fmt.Errorf("%q: %w: %s", order.Loop, errLoops, strings.Join(names, ", "))
	}
	return found, nil
}

// OfNoPass is a number that no pass has: who asks for passes from it on gets none, and the number of the next.
const OfNoPass = ^uint64(0)

// OrderPace orders a loop to pause, to step or to go on. Without an answer about a step the error is Unanswered, and wraps ErrStepUnknown.
func OrderPace(ctx context.Context, config *rest.Config, order PaceOrder) (answer PaceAnswer, err error) {
	if order.Order == StepLoop {
		err = callOnce(ctx, config, pacePath, order, &answer, ErrStepUnknown)
	} else {
		err = callCluster(ctx, config, pacePath, order, &answer)
	}
	if refused := (*Refusal)(nil); errors.As(err, &refused) && refused.StatusCode == http.StatusNotFound && refused.Reason == "" {
		return answer, errNoLessons
	}
	return answer, err
}
