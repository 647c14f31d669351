package router

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"time"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/setpoint-io/setpoint/agent/net/router/table"
)

const (
	// triesMax is how many endpoints are tried for one request.
	triesMax = 3
	// othersConnectTime is how long an endpoint has to take a connection while another one can be asked instead. A pod that has just
	// ended does not refuse connections: nobody answers at its address.
	othersConnectTime = 300 * time.Millisecond
)

type othersKey struct{}

// connectTime is how long an endpoint has to take a connection.
func connectTime(ctx context.Context) time.Duration {
	limit := table.DefaultConnectTimeout
	if route := routeOf(ctx); route != nil {
		limit = route.Options.ConnectTimeout
	}
	if ctx.Value(othersKey{}) != nil {
		limit = min(limit, othersConnectTime)
	}
	return limit
}

// RoundTrip implements http.RoundTripper: it asks a random endpoint, and others if that may be done. Those are chosen among the
// endpoints that are ready by then: in a rollout the ones of before may all be gone.
func (t *transports) RoundTrip(req *http.Request) (*http.Response, error) {
	route := routeOf(req.Context())
	tried := make([]netip.AddrPort, 0, triesMax)
	left := route.Backend.Endpoints
	for {
		at := left[rand.IntN(len(left))]
		tried = append(tried, at)
		ctx := req.Context()
		if len(left) > 1 && len(tried) < triesMax {
			ctx = context.WithValue(ctx, othersKey{}, true)
		}
		answer, err := t.ask(ctx, req, route, at)
		if err == nil || len(tried) == triesMax || !mayRetry(req, err) {
			return answer, err
		}
		left = without(t.now(route.Backend), tried)
		if len(left) == 0 {
			return nil, err
		}
	}
}

// mayRetry reports whether another endpoint may be asked: nobody has seen the request, or it asks for nothing but an answer (RFC 9110,
// 9.2.1) of which nothing has come.
func mayRetry(req *http.Request, err error) bool {
	if req.Context().Err() != nil || errors.Is(err, errReadTimeout) {
		return false
	}
	if errors.As(err, new(*dialError)) {
		return true
	}
	safe := slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace}, req.Method)
	return safe && (req.Body == nil || req.Body == http.NoBody)
}

func without(all, tried []netip.AddrPort) []netip.AddrPort {
	return slices.DeleteFunc(slices.Clone(all), func(at netip.AddrPort) bool { return slices.Contains(tried, at) })
}

// endpointsNow are those of a backend as the node knows them at this moment.
func (r *router) endpointsNow(b *table.Backend) []netip.AddrPort {
	port := networkingv1.ServiceBackendPort{Name: b.Port}
	if number, err := strconv.ParseInt(b.Port, 10, 32); err == nil { // no name is a number
		port = networkingv1.ServiceBackendPort{Number: int32(number)}
	}
	service := table.ServiceFrom(r.Informers.Core().V1().Services().Lister())(b.Namespace, b.Service)
	return table.NewBackend(service, b.Namespace, b.Service, port, b.Protocol, r.slices).Endpoints
}
