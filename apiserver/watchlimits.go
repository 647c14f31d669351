package apiserver

import (
	"bufio"
	"context"
	"math"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/setpoint-io/setpoint/apiserver/auth"
)

const (
	// maxWatchesPerUser bounds the watches of one user on one server, maxWatches those of
	// all users; more get 429. A watch costs about 100 KB, a goroutine and its
	// connection's buffers: 100 MB a user, 500 MB all together. Nodes count for
	// themselves only: they must get on whatever others do.
	maxWatchesPerUser = 1000
	maxWatches        = 5000
	// stalledTimeout is how long the client of a watch may take nothing of what is
	// sent to it: then, or at most stalledInterval later, its watch ends. Events are
	// never kept for it meanwhile.
	stalledTimeout = 30 * time.Second
	// stalledInterval is how often each watch is looked at.
	stalledInterval = 5 * time.Second
)

// tooManyRetryAfterSeconds is when a client that has too many may come again.
const tooManyRetryAfterSeconds = 1

// withWatchLimits bounds what watches may hold. The loops of this process are not
// counted, and read what they are sent.
func (s *Server) withWatchLimits(next http.Handler, perUser, all int) http.Handler {
	watches := watchCounts{perUser: perUser, limit: all, byUser: map[string]int{}}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, ok := request.RequestInfoFrom(r.Context())
		_, inProcess := r.Context().Value(callerKey{}).(user.Info)
		who, known := request.UserFrom(r.Context())
		if !ok || info.Verb != "watch" || inProcess || !known {
			next.ServeHTTP(w, r)
			return
		}
		if refusal := watches.enter(who); refusal != "" {
			s.refuse(w, r, apierrors.NewTooManyRequests(refusal, tooManyRetryAfterSeconds))
			return
		}
		defer watches.leave(who)
		writer := newImpatientWriter(r.Context(), w)
		defer writer.looks.Stop()
		next.ServeHTTP(writer, r)
	})
}

// watchCounts are how many watches each user has open, and all who are not nodes.
type watchCounts struct {
	perUser, limit int

	mu     sync.Mutex
	byUser map[string]int
	all    int
}

// enter says why a watch of the user may not begin, or "".
func (c *watchCounts) enter(who user.Info) (refusal string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, node := auth.NodeOf(who)
	switch {
	case c.byUser[who.GetName()] >= c.perUser:
		return "too many watches of this user are open"
	case !node && c.all >= c.limit:
		return "too many watches are open on this server"
	}
	c.byUser[who.GetName()]++
	if !node {
		c.all++
	}
	return ""
}

func (c *watchCounts) leave(who user.Info) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, node := auth.NodeOf(who); !node {
		c.all--
	}
	name := who.GetName()
	if c.byUser[name]--; c.byUser[name] == 0 {
		delete(c.byUser, name)
	}
}

// impatientWriter ends the connection, or the stream, of a client that takes nothing.
// The socket's deadline is only set then, as in limitReading. A watch may write
// hundreds of times a second, and a timer for each write would cost as much as its event.
type impatientWriter struct {
	http.ResponseWriter
	ctx        context.Context // of the request
	controller *http.ResponseController
	// writes grows when a write begins and when it ends: it is odd while one is under way.
	writes atomic.Uint64
	looks  *time.Timer
	// seen is writes at the last look, and for how long it has been so under way.
	seen    uint64
	stalled time.Duration
}

func newImpatientWriter(ctx context.Context, w http.ResponseWriter) *impatientWriter {
	i := &impatientWriter{ResponseWriter: w, ctx: ctx, controller: http.NewResponseController(w)}
	i.looks = time.AfterFunc(math.MaxInt64, i.look)
	i.looks.Reset(stalledInterval)
	return i
}

// look is called every stalledInterval until the request ends.
func (w *impatientWriter) look() {
	writes := w.writes.Load()
	switch {
	case w.ctx.Err() != nil:
		return
	case writes != w.seen || writes%2 == 0:
		w.seen, w.stalled = writes, 0
	case w.stalled+stalledInterval >= stalledTimeout:
		_ = w.controller.SetWriteDeadline(time.Unix(1, 0))
		return
	default:
		w.stalled += stalledInterval
	}
	w.looks.Reset(stalledInterval)
}

// Write implements http.ResponseWriter.
func (w *impatientWriter) Write(p []byte) (int, error) {
	w.writes.Add(1)
	defer w.writes.Add(1)
	return w.ResponseWriter.Write(p)
}

// Flush implements http.Flusher.
func (w *impatientWriter) Flush() {
	w.writes.Add(1)
	defer w.writes.Add(1)
	_ = w.controller.Flush() // the next write fails too
}

// CloseNotify is there for upstream's wrappers, as that of responseWriter.
func (w *impatientWriter) CloseNotify() <-chan bool { return nil }

// Hijack implements http.Hijacker, for watches over WebSockets.
func (w *impatientWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) { return w.controller.Hijack() }

// Unwrap lets http.ResponseController find the writer below.
func (w *impatientWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
