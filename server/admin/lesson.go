package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
)

// The lessons.
const (
	KillLesson    = "kill"
	HealLesson    = "heal"
	AdvanceLesson = "advance"
)

// What can be killed and healed.
const (
	NodePart   = "node"
	ServerPart = "server"
	PodPart    = "pod"
)

// AdvanceMax is how far a cluster's clock is moved at once.
const AdvanceMax = time.Hour

var (
	// ErrAdvanceUnknown: the clock was ordered to be moved, and there was no answer. Ordered again, it could be moved twice.
	ErrAdvanceUnknown = errors.New("it is not known whether the clock was moved, and some of the time may have passed: look before you repeat it")

	errNotToLearn = errors.New("nothing is killed in this cluster, nor its clock moved: that is for clusters to learn on, such as 'setpoint dev' runs")

	errLesson  = errors.New("want the order kill, heal or advance")
	errPart    = errors.New("want a node, a server or a pod, and its name")
	errAdvance = fmt.Errorf("the clock is moved by more than nothing and at most %v at once", AdvanceMax)
)

// Lessons breaks and mends parts of a cluster to learn on. It is safe for concurrent use. An error of the API, such as not found, is
// answered with its own code; another is a reason to refuse, in one sentence.
type Lessons interface {
	// Kill ends a part: a node, a server, or a pod by "namespace/name". A part that is ended already stays so.
	Kill(ctx context.Context, part, name string) error
	// Heal undoes Kill.
	Heal(ctx context.Context, part, name string) error
	// Advance lets time pass for the cluster alone, up to AdvanceMax.
	Advance(ctx context.Context, d time.Duration) error
	// NoClock is why Advance refuses this cluster whatever it is asked, nil if it does not.
	NoClock() error
}

// LessonsOffer says which lessons a cluster takes, so that a page offers no other.
type LessonsOffer struct {
	// Refused is why nothing is killed in this cluster, and no loop held; empty: it takes lessons.
	Refused string `json:"refused,omitempty"`
	// NoClock is why its clock is not moved; empty: it is.
	NoClock string `json:"noClock,omitempty"`
	// Now is the cluster's time.
	Now time.Time `json:"now"`
}

func (a *Admin) offer() LessonsOffer {
	offer := LessonsOffer{Now: a.config.Storage.Now()}
	if a.config.Lessons == nil {
		offer.Refused, offer.NoClock = errNotToLearn.Error(), errNotToLearn.Error()
	} else if err := a.config.Lessons.NoClock(); err != nil {
		offer.NoClock = err.Error()
	}
	return offer
}

// LessonOrder breaks or mends a part of the cluster, or moves its clock.
type LessonOrder struct {
	// Order is one of the lessons.
	Order string `json:"order"`
	// Part and Name say what is killed or healed, as in Lessons.
	Part string `json:"part,omitempty"`
	Name string `json:"name,omitempty"`
	// By is how far the clock is moved, in nanoseconds.
	By time.Duration `json:"by,omitempty"`
}

// Validate says what is wrong with the order itself.
func (o *LessonOrder) Validate() error {
	switch o.Order {
	case KillLesson, HealLesson:
		if !slices.Contains([]string{NodePart, ServerPart, PodPart}, o.Part) || o.Name == "" {
			return errPart
		}
	case AdvanceLesson:
		if o.By <= 0 || o.By > AdvanceMax {
			return errAdvance
		}
	default:
		return errLesson
	}
	return nil
}

// serveLesson carries out an order, or tells what may be ordered.
func (a *Admin) serveLesson(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(a.offer()) // the client is gone if this fails
		return
	}
	var order LessonOrder
	if err := ReadOrder(http.MaxBytesReader(w, r.Body, changeBodyBytes), &order); err != nil || r.Method != http.MethodPost {
		http.Error(w, fmt.Sprintf("want POST with a lesson: %v", err), http.StatusBadRequest)
		return
	}
	if err := a.teach(r.Context(), order); err != nil {
		http.Error(w, err.Error(), lessonStatus(err))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(struct{}{}) // the client is gone if this fails
}

func (a *Admin) teach(ctx context.Context, order LessonOrder) error {
	if a.config.Lessons == nil {
		return errNotToLearn
	}
	if err := order.Validate(); err != nil {
		return err
	}
	a.config.Logger.Info("lesson", "order", order.Order, "part", order.Part, "name", order.Name, "by", order.By)
	switch order.Order {
	case KillLesson:
		return a.config.Lessons.Kill(ctx, order.Part, order.Name)
	case HealLesson:
		return a.config.Lessons.Heal(ctx, order.Part, order.Name)
	}
	return a.config.Lessons.Advance(ctx, order.By)
}

func lessonStatus(err error) int {
	var status apierrors.APIStatus
	switch {
	case errors.Is(err, errLesson), errors.Is(err, errPart), errors.Is(err, errAdvance):
		return http.StatusBadRequest
	case errors.As(err, &status):
		return int(status.Status().Code)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return http.StatusServiceUnavailable
	}
	return http.StatusConflict
}

// OrderLesson orders a lesson of one server. Without an answer about the clock the error is Unanswered, and wraps ErrAdvanceUnknown.
func OrderLesson(ctx context.Context, config *rest.Config, order LessonOrder) (err error) {
	if order.Order == AdvanceLesson {
		err = callOnce(ctx, config, lessonPath, order, &struct{}{}, ErrAdvanceUnknown)
	} else {
		err = callCluster(ctx, config, lessonPath, order, &struct{}{})
	}
	if refused := (*Refusal)(nil); errors.As(err, &refused) && refused.StatusCode == http.StatusNotFound && refused.Reason == "" {
		return errNotToLearn
	}
	return err
}
