package router

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/setpoint-io/setpoint/agent/net/router/table"
	"github.com/setpoint-io/setpoint/internal/shares"
)

const (
	// mirrorsMax is how many copies of requests are under way at once, shared by the namespaces of their routes; more are not sent.
	mirrorsMax = 256
	// mirrorBytesMax is the largest body that is copied; requests with larger ones, or of unknown size, are not.
	mirrorBytesMax = 1 << 20
	// mirrorTimeout is how long a copy may take. It is not longer than drainTimeout.
	mirrorTimeout = 10 * time.Second
)

// changeRequest does what a route changes in a request, beside its path.
func changeRequest(c *table.Change, out *http.Request) {
	for i := range c.Request {
		c.Request[i].Apply(out.Header)
	}
	if c.Host != "" {
		out.Host = c.Host
	}
}

// answered does what a route changes in an answer.
func (r *router) answered(answer *http.Response) error {
	route := routeOf(answer.Request.Context())
	if route == nil || route.Change == nil {
		return nil
	}
	if cors := route.Change.CORS; cors != nil {
		cors.Permit(answer.Request, answer.Header)
	}
	for i := range route.Change.Answer {
		route.Change.Answer[i].Apply(answer.Header)
	}
	return nil
}

// RoundTrip implements http.RoundTripper for the proxy: it asks the backend, and sends copies to those that get them.
func (r *router) RoundTrip(req *http.Request) (*http.Response, error) {
	route := routeOf(req.Context())
	if route.Change != nil && len(route.Change.Mirrors) > 0 {
		r.mirror(req, route)
	}
	return r.transports.RoundTrip(req)
}

// mirror sends copies of a request, as it goes to its backend.
func (r *router) mirror(req *http.Request, route *table.Route) {
	if req.ContentLength < 0 || req.ContentLength > mirrorBytesMax {
		return
	}
	var body []byte
	if req.Body != nil && req.Body != http.NoBody {
		var err error
		if body, err = io.ReadAll(req.Body); err != nil {
			req.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body), failing{err}))
			return
		}
		req.Body = io.NopCloser(bytes.NewReader(body))
	}
	to := route.Change.Mirrors
	for i := range to {
		if rand.Int32N(to[i].Denominator) < to[i].Numerator && len(to[i].Backend.Endpoints) > 0 {
			r.copyTo(route.Ingress.Namespace, to[i].Backend, req, body)
		}
	}
}

// failing is the rest of a body that could not be read.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// copyTo sends one copy, unless too many are under way.
func (r *router) copyTo(namespace string, backend *table.Backend, req *http.Request, body []byte) {
	leave, err := r.mirrors.Enter(shares.Namespace(namespace))
	if err != nil {
		return
	}
	route := &table.Route{Backend: backend, Options: table.Options{ConnectTimeout: table.DefaultConnectTimeout, ReadTimeout: mirrorTimeout}}
	ctx := context.WithValue(context.WithoutCancel(req.Context()), routeKey{}, route)
	ctx, cancel := context.WithTimeout(ctx, mirrorTimeout)
	duplicate := req.Clone(ctx)
	duplicate.Body = http.NoBody
	if len(body) > 0 {
		duplicate.Body = io.NopCloser(bytes.NewReader(body))
	}
	r.mirroring.Go(func() {
		defer leave()
		defer cancel()
		answer, err := r.transports.RoundTrip(duplicate)
		if err != nil {
			r.Logger.Debug("a copy of a request was not taken", "service", backend.Namespace+"/"+backend.Service, "err", err)
			return
		}
		_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, mirrorBytesMax))
		_ = answer.Body.Close()
	})
}
