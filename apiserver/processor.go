package apiserver

import (
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/httpstream"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/setpoint-io/setpoint/apiserver/auth"
	"github.com/setpoint-io/setpoint/internal/cpushare"
	"github.com/setpoint-io/setpoint/internal/paidstream"
	"github.com/setpoint-io/setpoint/internal/sampled"
	"github.com/setpoint-io/setpoint/internal/shares"
)

// What a request costs of the processors, in units of a get of a small object.
const (
	readUnits = 1
	// writeUnits are for a log entry, its events and the checks before it.
	writeUnits = 3
	// streamUnits are for the second connection, to a node, and what both have to agree upon.
	streamUnits = 10
	// answerUnits are for each part of an answer that is written by itself, such as an event of a watch, and a unit for
	// each unitBytes of an answer.
	answerUnits = 0.1
	unitBytes   = 8 << 10
	// chargeUnits are charged at once while an answer is written.
	chargeUnits = 5
	// seatUnits are for a seat of a list after its first: 100 objects or 100 KB that it looks at.
	seatUnits = 5
	// longSeats of a list are so many that it waits for its tenant's turn: it looks at 500 objects, or 500 KB.
	longSeats = 5
)

// withProcessor lets a tenant have no more of the processors than its share. The loops of this process do not wait.
func (s *Server) withProcessor(next http.Handler) http.Handler {
	if s.config.Processor == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, ok := request.RequestInfoFrom(r.Context())
		_, inProcess := r.Context().Value(callerKey{}).(user.Info)
		who, known := request.UserFrom(r.Context())
		if !ok || inProcess || !known || aboutHealth(info) {
			next.ServeHTTP(w, r)
			return
		}
		holder, stream := processorHolder(r, who), s.isStream(r, info)
		if err := s.config.Processor.Wait(r.Context(), holder, requestUnits(r, stream)+s.lookUnits(r, info, holder)); err != nil {
			s.refuse(w, r, apierrors.NewTooManyRequests(err.Error(), tooManyRetryAfterSeconds))
			return
		}
		switch {
		case holder.Privileged:
			next.ServeHTTP(w, r)
			return
		case stream:
			pay := func(bytes int) { s.config.Processor.Spend(holder, paidstream.Units(bytes)) }
			next.ServeHTTP(&paidstream.Answer{ResponseWriter: w, Pay: pay}, r) // what the client sends its connection pays for
			return
		}
		answer := &charged{ResponseWriter: w, server: s, holder: holder, long: s.longOf(r, holder), watch: info.Verb == "watch"}
		defer answer.charge()
		next.ServeHTTP(answer, r)
	})
}

// aboutHealth: whoever checks a server must not be told that somebody else at his address keeps it busy. These cost little.
func aboutHealth(info *request.RequestInfo) bool {
	if info.IsResourceRequest {
		return false
	}
	first, _, _ := strings.Cut(strings.TrimPrefix(info.Path, "/"), "/")
	return first == "healthz" || first == "livez" || first == "readyz"
}

// isStream tells what is only passed on, and may take over its connection: an aggregated server has subresources of its own for that.
func (s *Server) isStream(r *http.Request, info *request.RequestInfo) bool {
	return httpstream.IsUpgradeRequest(r) || info.Verb != "watch" && s.longRunning(r, info)
}

// lookUnits is what a list costs by the objects that it looks at, whatever it answers.
func (s *Server) lookUnits(r *http.Request, info *request.RequestInfo, holder shares.Holder) float64 {
	if s.config.Fairness == nil || holder.Privileged {
		return 0
	}
	return float64(s.config.Fairness.Width(r, info)-1) * seatUnits
}

// longOf is what a request takes its turns of if it computes for long, such as an update of a large object, which finds it in its context.
func (s *Server) longOf(r *http.Request, holder shares.Holder) *cpushare.Long {
	long := s.config.Processor.Long(r.Context(), holder)
	if e, ok := r.Context().Value(entryKey{}).(*entered); ok {
		e.long = long
	}
	return long
}

// withTurn lets requests that look at many objects wait for their tenant's turn. They have their seats then, as writes have: who had a turn
// and waited for a seat would wait for those who have a seat and wait for a turn. A watch has it until it has found what it begins with.
func (s *Server) withTurn(next http.Handler) http.Handler {
	if s.config.Processor == nil || s.config.Fairness == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		long, _ := r.Context().Value(cpushare.LongKey{}).(*cpushare.Long)
		info, known := request.RequestInfoFrom(r.Context())
		if long != nil && known {
			s.begin(long, r, info)
			defer long.End()
		}
		next.ServeHTTP(w, r)
	})
}

func (s *Server) begin(long *cpushare.Long, r *http.Request, info *request.RequestInfo) {
	looks := *info
	if info.Verb == "deletecollection" {
		looks.Verb = "list" // first
	}
	switch {
	case s.config.Fairness.Width(r, &looks) < longSeats:
	case info.Verb == looks.Verb:
		long.Begin()
	default:
		long.BeginWrite()
	}
}

// processorHolder is the tenant of a request. Who has no name is known by his machine.
func processorHolder(r *http.Request, who user.Info) shares.Holder {
	if who.GetName() == user.Anonymous {
		return shares.Stranger(sampled.Source(r.RemoteAddr))
	}
	return auth.Tenant(who)
}

// requestUnits is what a request costs beside what is read of it, which its connection pays for, and its answer.
func requestUnits(r *http.Request, stream bool) float64 {
	switch {
	case stream:
		return streamUnits
	case r.Method == http.MethodGet || r.Method == http.MethodHead:
		return readUnits
	}
	return writeUnits
}

// charged charges a tenant with what is written to it.
type charged struct {
	http.ResponseWriter
	server *Server
	holder shares.Holder
	long   *cpushare.Long
	units  float64 // not yet charged
	// watch: it has no next request that could wait, so each of its events waits until the tenant's time has come.
	watch bool
}

// Write implements http.ResponseWriter.
func (c *charged) Write(p []byte) (n int, err error) {
	c.units += answerUnits + float64(len(p))/unitBytes
	c.long.Outside(func() {
		c.pay()
		n, err = c.ResponseWriter.Write(p)
	})
	return n, err
}

func (c *charged) pay() {
	switch {
	case c.watch:
		c.server.config.Processor.Spend(c.holder, c.units)
		c.units = 0
	case c.units >= chargeUnits:
		c.charge()
	}
}

func (c *charged) charge() {
	c.server.config.Processor.Charge(c.holder, c.units)
	c.units = 0
}

// Unwrap lets http.ResponseController find the connection.
func (c *charged) Unwrap() http.ResponseWriter { return c.ResponseWriter }
