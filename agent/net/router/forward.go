package router

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"time"

	"github.com/setpoint-io/setpoint/agent/net/router/table"
)

// errReadTimeout means that a backend did not begin to answer in time.
var errReadTimeout = errors.New("the backend did not answer in time")

type (
	routeKey struct{}
	portKey  struct{}
)

func routeOf(ctx context.Context) *table.Route {
	route, _ := ctx.Value(routeKey{}).(*table.Route)
	return route
}

// forward hands a request to one of the route's endpoints, of which there is one at least.
func (r *router) forward(w *answer, req *http.Request, route *table.Route, at int) {
	if limit := route.Options.BodyBytesMax; limit > 0 {
		if req.ContentLength > limit {
			http.Error(w, "the body is too large", http.StatusRequestEntityTooLarge)
			return
		}
		req.Body = http.MaxBytesReader(w.ResponseWriter, req.Body, limit) // it closes the connection
	}
	ctx := context.WithValue(context.WithValue(req.Context(), routeKey{}, route), portKey{}, r.asked(at))
	if route.Change != nil && route.Change.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, route.Change.Timeout, errReadTimeout)
		defer cancel()
	}
	r.proxy.ServeHTTP(w, req.WithContext(ctx))
}

func (r *router) newProxy(t *transports) *httputil.ReverseProxy {
	r.transports = t
	return &httputil.ReverseProxy{
		Rewrite: r.rewrite, Transport: r, ModifyResponse: r.answered, ErrorHandler: r.failed, FlushInterval: -1, BufferPool: &buffers{},
		ErrorLog: slog.NewLogLogger(r.Logger.Handler(), slog.LevelDebug),
	}
}

// rewrite makes the request for the backend. The host is chosen later.
func (r *router) rewrite(p *httputil.ProxyRequest) {
	route := routeOf(p.In.Context())
	p.Out.URL.Scheme = "http"
	p.Out.Host = p.In.Host
	asked := table.Clean(p.In.URL.Path)
	if target := route.Target(asked); target != p.In.URL.Path {
		p.Out.URL.Path, p.Out.URL.RawPath = target, ""
	}
	p.Out.URL.RawQuery = p.In.URL.RawQuery // nobody here reads it
	p.SetXForwarded()
	client, _, _ := net.SplitHostPort(p.In.RemoteAddr)
	p.Out.Header.Set("X-Forwarded-Port", fmt.Sprint(p.In.Context().Value(portKey{})))
	p.Out.Header.Set("X-Real-Ip", client)
	if route.Change != nil {
		changeRequest(route.Change, p.Out)
	}
}

// failed answers for a backend that did not.
func (r *router) failed(w http.ResponseWriter, req *http.Request, err error) {
	code := http.StatusBadGateway
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		code = http.StatusRequestEntityTooLarge
	case errors.Is(err, errReadTimeout) || errors.Is(context.Cause(req.Context()), errReadTimeout):
		code = http.StatusGatewayTimeout
	case req.Context().Err() != nil:
		return // the client is gone
	}
	route := routeOf(req.Context())
	r.Logger.Debug("request failed", "ingress", route.Ingress.String(), "code", code, "err", err)
	http.Error(w, http.StatusText(code), code)
}

// dial gives an endpoint the time that the Ingress says, or less while there are others.
func dial(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: connectTime(ctx)}
	conn, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, &dialError{err}
	}
	return conn, nil
}

// dialError means that no endpoint has seen anything of the request.
type dialError struct{ error }

func (e *dialError) Unwrap() error { return e.error }

// ask asks one endpoint. Only the time until it begins to answer is limited.
func (t *transports) ask(ctx context.Context, req *http.Request, route *table.Route, at netip.AddrPort) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(route.Options.ReadTimeout, func() { cancel(errReadTimeout) })
	defer timer.Stop()
	out := req.WithContext(ctx)
	target := *req.URL
	target.Host = at.String()
	if route.Backend.Protocol == table.HTTPS || route.Backend.TLS != nil {
		target.Scheme = "https"
	}
	out.URL = &target
	if req.Body != nil && req.Body != http.NoBody {
		out.Body = io.NopCloser(req.Body) // a transport that fails closes it, and the next needs it
	}
	answer, err := t.of(route.Backend).RoundTrip(out)
	if err != nil && errors.Is(context.Cause(ctx), errReadTimeout) {
		err = errReadTimeout
	}
	return answer, err
}
