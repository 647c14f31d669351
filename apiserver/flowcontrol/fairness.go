package flowcontrol

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apiserver/pkg/endpoints/request"
)

const (
	// patience is the share of a request's time that it may wait: one in so many.
	patience = 4
	// watchPatience bounds how long a watch, which has no end of its own, waits to begin.
	watchPatience = 15 * time.Second
	// retryAfterSeconds is what a client that is refused is told to wait.
	retryAfterSeconds = 1
)

// The names of the headers that tell a client how it was classified.
var (
	schemaHeader = http.CanonicalHeaderKey(flowcontrolv1.ResponseHeaderMatchedFlowSchemaUID)
	levelHeader  = http.CanonicalHeaderKey(flowcontrolv1.ResponseHeaderMatchedPriorityLevelConfigurationUID)
)

// Fairness holds the plan in force. It is safe for concurrent use.
type Fairness struct {
	plan  atomic.Pointer[plan]
	sizes Sizes

	mu      sync.Mutex
	schemas map[string]*flowcontrolv1.FlowSchema
	levels  map[string]*flowcontrolv1.PriorityLevelConfiguration
}

// New knows the mandatory objects only; Follow tells it the others. Without sizes every request takes one seat.
func New(sizes Sizes) *Fairness {
	f := &Fairness{
		sizes:   sizes,
		schemas: map[string]*flowcontrolv1.FlowSchema{},
		levels:  map[string]*flowcontrolv1.PriorityLevelConfiguration{},
	}
	f.plan.Store(newPlan(nil, nil, nil))
	return f
}

// Handler passes requests on when it is their turn. longRunning ones other than watches
// pass at once.
func (f *Fairness) Handler(next http.Handler, longRunning request.LongRunningRequestCheck) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, known := request.RequestInfoFrom(r.Context())
		who, named := request.UserFrom(r.Context())
		if !known || !named || info.Verb != "watch" && longRunning(r, info) {
			next.ServeHTTP(w, r)
			return
		}
		watch := info.Verb == "watch"
		s := f.plan.Load().classify(who, info)
		held, admitted := s.level.take(r.Context(), flowKey{s.Name, flowOf(s.FlowSchema, who, info)}, f.Width(r, info), watch)
		header := w.Header()
		header[schemaHeader], header[levelHeader] = s.uid, s.levelUID
		switch {
		case !admitted:
			refuse(w)
		case watch:
			serveWatch(next, w, r, &seat{level: s.level, held: held})
		default:
			defer s.level.leave(held)
			next.ServeHTTP(w, r)
		}
	})
}

func serveWatch(next http.Handler, w http.ResponseWriter, r *http.Request, held *seat) {
	defer held.release()
	next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), seatKey{}, held)))
}

// refuse says when to come again, in upstream's words.
func refuse(w http.ResponseWriter) {
	w.Header().Set("Retry-After", strconv.Itoa(retryAfterSeconds))
	http.Error(w, "Too many requests, please try again later.", http.StatusTooManyRequests)
}

// waitContext bounds how long a request may wait.
func waitContext(ctx context.Context, watch bool) (context.Context, context.CancelFunc) {
	deadline, bounded := ctx.Deadline()
	if watch || !bounded {
		return context.WithTimeout(ctx, watchPatience)
	}
	return context.WithTimeout(ctx, time.Until(deadline)/patience)
}

// seat is a watch's, or several. It is given back once: when the watch has begun, or ended.
type seat struct {
	level *level
	held  grant
	once  sync.Once
}

type seatKey struct{}

func (s *seat) release() { s.once.Do(func() { s.level.leave(s.held) }) }

// WatchBegun says that the request of ctx has what it waits for events with: from now on
// it costs next to nothing.
func WatchBegun(ctx context.Context) {
	if s, ok := ctx.Value(seatKey{}).(*seat); ok {
		s.release()
	}
}
