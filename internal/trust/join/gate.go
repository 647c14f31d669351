package join

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/internal/clip"
	"github.com/setpoint-io/setpoint/internal/sampled"
)

// bodyMaxBytes bounds a request; a real one has about 1 KiB.
const bodyMaxBytes = 64 << 10

const (
	// joinsMax is how many requests are judged at the same time; more wait, up to judgeTimeout from their beginning, and get 429 then.
	joinsMax     = 16
	judgeTimeout = 10 * time.Second
	// bodyTimeout is how long a body may take to arrive: until then it keeps nobody waiting.
	bodyTimeout = 10 * time.Second
)

// nameBytesMax is how much of a name is logged: more than any node's has.
const nameBytesMax = 256

// errBehind is what machines are told while a server may not know who was shut out, nor the keys of now. They ask again.
var errBehind = apierrors.NewServiceUnavailable("this server has started and does not follow the cluster yet: ask again, or another server")

func follows(tells func() bool) bool { return tells == nil || tells() }

// gate is what requests of machines that join pass, which anybody can make.
type gate struct {
	log *slog.Logger
	// refusals chooses which refusals are logged.
	refusals sampled.Sampler
	// seats has an entry for each request that is judged now.
	seats chan struct{}
}

func newGate(log *slog.Logger) gate {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return gate{log: log, seats: make(chan struct{}, joinsMax)}
}

// admit reads the body into asked and has the request judged, within judgeTimeout.
func admit[T any](g *gate, w http.ResponseWriter, r *http.Request, asked any, judge func(*http.Request) (T, error)) (answer T, err error) {
	if r.Method != http.MethodPost {
		return answer, newRefusal(http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed, "only POST is answered here")
	}
	if err := read(w, r, asked); err != nil {
		return answer, apierrors.NewBadRequest("the body is not a join request in JSON of at most 64 KiB: " + err.Error())
	}
	ctx, cancel := context.WithTimeout(r.Context(), judgeTimeout)
	defer cancel()
	select {
	case g.seats <- struct{}{}:
		defer func() { <-g.seats }()
	case <-ctx.Done():
		return answer, apierrors.NewTooManyRequestsError("too many machines join at this moment: try again")
	}
	return judge(r.WithContext(ctx))
}

// read reads the body.
func read(w http.ResponseWriter, r *http.Request, asked any) error {
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(bodyTimeout)) // of a connection that has none, the context ends the request
	defer func() { _ = control.SetReadDeadline(time.Time{}) }()
	return json.NewDecoder(http.MaxBytesReader(w, r.Body, bodyMaxBytes)).Decode(asked)
}

// refuse says why a machine may not join, to the machine and now and then in the log.
func (g *gate) refuse(w http.ResponseWriter, r *http.Request, name string, err error) {
	if skipped, tell := g.refusals.Tell(sampled.Source(r.RemoteAddr), time.Now()); tell {
		g.log.Warn("a machine may not join", "name", clip.Text(name, nameBytesMax), "address", r.RemoteAddr, "err", err, "skipped", skipped)
	}
	writeStatus(w, err)
}

func forbidden(message string) error {
	return newRefusal(http.StatusForbidden, metav1.StatusReasonForbidden, message)
}

func newRefusal(code int32, reason metav1.StatusReason, message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message,
	}}
}

func writeStatus(w http.ResponseWriter, err error) {
	status := metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: "internal error"}
	if known, ok := errors.AsType[*apierrors.StatusError](err); ok {
		status = known.Status()
	}
	status.Kind, status.APIVersion = "Status", "v1"
	writeJSON(w, int(status.Code), status)
}

func writeJSON(w http.ResponseWriter, code int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(value) // a client that went away needs no answer
}
