package apiserver

import (
	"bufio"
	"net"
	"net/http"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
)

const (
	// maxWatchesPerUser bounds the watches of one user on one server; more get 429.
	// A watch costs a goroutine and its connection's buffers.
	maxWatchesPerUser = 10_000
	// stalledTimeout is how long the client of a watch may take nothing of what is
	// sent to it: then its watch ends. Events are never kept for it meanwhile.
	stalledTimeout = 30 * time.Second
)

// tooManyRetryAfterSeconds is when a client that has too many may come again.
const tooManyRetryAfterSeconds = 1

// withWatchLimits bounds what watches may hold. The loops of this process are not
// counted, and read what they are sent.
func (s *Server) withWatchLimits(next http.Handler, perUser int) http.Handler {
	watches := watchCounts{byUser: map[string]int{}}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, ok := request.RequestInfoFrom(r.Context())
		_, inProcess := r.Context().Value(callerKey{}).(user.Info)
		who, known := request.UserFrom(r.Context())
		if !ok || info.Verb != "watch" || inProcess || !known {
			next.ServeHTTP(w, r)
			return
		}
		if !watches.enter(who.GetName(), perUser) {
			s.refuse(w, r, apierrors.NewTooManyRequests("too many watches of this user are open", tooManyRetryAfterSeconds))
			return
		}
		defer watches.leave(who.GetName())
		next.ServeHTTP(newImpatientWriter(w), r)
	})
}

// watchCounts are how many watches each user has open.
type watchCounts struct {
	mu     sync.Mutex
	byUser map[string]int
}

func (c *watchCounts) enter(name string, limit int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byUser[name] >= limit {
		return false
	}
	c.byUser[name]++
	return true
}

func (c *watchCounts) leave(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byUser[name]--; c.byUser[name] == 0 {
		delete(c.byUser, name)
	}
}

// impatientWriter ends the connection, or the stream, of a client that takes nothing.
// The socket's deadline is only set then, as in limitReading.
type impatientWriter struct {
	http.ResponseWriter
	controller *http.ResponseController
	stalled    *time.Timer
}

func newImpatientWriter(w http.ResponseWriter) *impatientWriter {
	controller := http.NewResponseController(w)
	stalled := time.AfterFunc(stalledTimeout, func() { _ = controller.SetWriteDeadline(time.Unix(1, 0)) })
	stalled.Stop()
	return &impatientWriter{ResponseWriter: w, controller: controller, stalled: stalled}
}

// Write implements http.ResponseWriter.
func (w *impatientWriter) Write(p []byte) (int, error) {
	w.stalled.Reset(stalledTimeout)
	defer w.stalled.Stop()
	return w.ResponseWriter.Write(p)
}

// Flush implements http.Flusher.
func (w *impatientWriter) Flush() {
	w.stalled.Reset(stalledTimeout)
	defer w.stalled.Stop()
	_ = w.controller.Flush() // the next write fails too
}

// Hijack implements http.Hijacker, for watches over WebSockets.
func (w *impatientWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) { return w.controller.Hijack() }

// Unwrap lets http.ResponseController find the writer below.
func (w *impatientWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
