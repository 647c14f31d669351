package apiserver

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/setpoint-io/setpoint/apiserver/auth"
	"github.com/setpoint-io/setpoint/internal/shares"
)

const (
	// maxWatches bounds the watches of all tenants of one server, maxWatchesEach those of one tenant. A watch costs about 100 KB, a
	// goroutine and its connection's buffers: 500 MB all together.
	maxWatches, maxWatchesEach = 5000, 1000
	// maxWatchesPrivileged bounds those of an administrator, or of a node: it watches each Secret and ConfigMap by itself that its pods
	// have, or that Ingresses and Gateways name.
	maxWatchesPrivileged = 5000
	// maxStreams, maxStreamsEach and maxStreamsPrivileged bound the same for what has no end of its own and goes through this server to
	// a node or pod: logs, exec, attach, port-forward, proxies. Each takes two connections; those of all tenants have at most one in
	// streamFilesPart of the files that the process may open.
	maxStreams, maxStreamsEach, maxStreamsPrivileged = 4000, 1000, 1000
	streamFilesPart                                  = 4
	// streamBytes is what a stream takes that this server translates from WebSocket to SPDY, the garbage collector's part included. All
	// have one in streamMemoryPart of the memory at most.
	streamBytes, streamMemoryPart = 1 << 20, 2
)

// tooManyRetryAfterSeconds is when a client that has too many may come again.
const tooManyRetryAfterSeconds = 1

// Shares are what the tenants of one server have of its watches and streams.
type Shares struct{ watches, streams *shares.Places }

// NewShares makes them for a server, with nothing taken.
func NewShares() *Shares {
	streams := min(shares.OfFiles(2*maxStreams, streamFilesPart)/2, shares.OfMemory(maxStreams, streamBytes, streamMemoryPart))
	return newShares(
		shares.Limits{All: maxWatches, Each: maxWatchesEach, Privileged: maxWatchesPrivileged},
		shares.Limits{All: streams, Each: maxStreamsEach, Privileged: maxStreamsPrivileged},
	)
}

func newShares(watches, streams shares.Limits) *Shares {
	return &Shares{watches: shares.New("watches on this server", watches), streams: shares.New("streams through this server", streams)}
}

// Metrics tells how many are taken, and how often somebody was refused.
func (s *Shares) Metrics() prometheus.Collector { return shares.Metrics{s.watches, s.streams} }

// withShares lets nobody have more of the watches and streams than his share. The loops of this process are not counted, and
// read what they are sent.
func (s *Server) withShares(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, ok := request.RequestInfoFrom(r.Context())
		_, inProcess := r.Context().Value(callerKey{}).(user.Info)
		who, known := request.UserFrom(r.Context())
		if !ok || inProcess || !known || !s.longRunning(r, info) {
			next.ServeHTTP(w, r)
			return
		}
		places := s.config.Shares.streams
		if info.Verb == "watch" {
			places = s.config.Shares.watches
		}
		leave, err := places.Enter(auth.Tenant(who))
		if err != nil {
			s.refuse(w, r, apierrors.NewTooManyRequests(err.Error(), tooManyRetryAfterSeconds))
			return
		}
		defer leave()
		if info.Verb != "watch" {
			next.ServeHTTP(w, r)
			return
		}
		writer := newImpatientWriter(r.Context(), w)
		defer writer.looks.Stop()
		next.ServeHTTP(writer, r)
	})
}
