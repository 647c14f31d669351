package router

import (
	"crypto/rand"
	"net/http"
	"time"

	"github.com/setpoint-io/setpoint/agent/net/router/table"
)

// requestID is the header by which a request is found in the logs of all that it passes.
const requestID = "X-Request-Id"

// answer notes what is answered to one request.
type answer struct {
	http.ResponseWriter
	// route is nil if there is none for it.
	route *table.Route
	code  int
	bytes int64
}

// Unwrap is for http.ResponseController, which flushes and hijacks.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(code int) {
	if a.code == 0 && (code >= 200 || code == http.StatusSwitchingProtocols) {
		a.code = code
	}
	a.ResponseWriter.WriteHeader(code)
}

// Write implements http.ResponseWriter.
func (a *answer) Write(p []byte) (int, error) {
	if a.code == 0 {
		a.code = http.StatusOK
	}
	n, err := a.ResponseWriter.Write(p)
	a.bytes += int64(n)
	return n, err
}

// answer answers a request to a port, counts it and logs it.
func (r *router) answer(w http.ResponseWriter, req *http.Request, at int) {
	begun := time.Now()
	if req.Header.Get(requestID) == "" {
		req.Header.Set(requestID, rand.Text())
	}
	a := &answer{ResponseWriter: w}
	defer func() { // also if the proxy gives up in the middle of an answer
		took := time.Since(begun)
		r.Metrics.count(a.route, a.code, took)
		if r.access != nil {
			r.access.add(&access{Request: req, at: at, owner: ownerOf(a.route), code: a.code, bytes: a.bytes, begun: begun, took: took})
		}
	}()
	r.handle(a, req, at)
}
