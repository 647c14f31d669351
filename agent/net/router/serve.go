package router

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/setpoint-io/setpoint/agent/base/wait"
	"github.com/setpoint-io/setpoint/agent/net/router/table"
	"github.com/setpoint-io/setpoint/internal/gatewayapi"
	"github.com/setpoint-io/setpoint/internal/shares"
	"github.com/setpoint-io/setpoint/internal/strangers"
)

const (
	// requestsMax is how many requests and streams of all ports are under way at once, shared by the namespaces of their routes. Each takes
	// two connections; all have at most half of the files that the process may open.
	requestsMax = 16384
	// silentMax is how many connections of clients wait for their next request at once, or have not sent their first one yet; beyond it the
	// oldest goes, as package strangers says. They have at most an eighth of the files.
	silentMax, silentFilesPart = 4096, 8
	// headerTimeout is how long a client may take for a request's headers, idleTimeout how long a connection waits for the next request.
	headerTimeout = 30 * time.Second
	idleTimeout   = 75 * time.Second
	// headerBytesMax is how large all headers of a request may be, and those of an answer.
	headerBytesMax = 64 << 10
	// drainTimeout is how long requests under way have when the agent ends.
	drainTimeout = 10 * time.Second
	// listenInterval is the pause after a port could not be opened.
	listenInterval = 10 * time.Second
)

// router is one running Watch. changed holds one: more would say the same.
type router struct {
	Config
	changed chan struct{}
	table   atomic.Pointer[table.Table]
	// ports are what Gateways serve; objects is nil if they serve nothing.
	ports   atomic.Pointer[ports]
	objects *gatewayapi.Watcher
	// opened are the ports that are open for Gateways alone; only follow touches them.
	opened map[int]opened
	// closeShared closes Ports; nil: they are closed. Only follow touches it.
	closeShared context.CancelFunc
	listening   sync.WaitGroup
	secrets     *gatewayapi.Named[*tls.Certificate] // of Ingresses
	ofGateways  *gatewayapi.Named[*tls.Certificate] // apart, since the loops tell of either what is cut
	authorities *gatewayapi.Named[*table.Authorities]
	proxy       *httputil.ReverseProxy
	access      *accessLog // nil: none
	dial        dialer
	// transports are those of proxy; mirrors has one for each copy of a request under way.
	transports *transports
	mirrors    *shares.Places
	mirroring  sync.WaitGroup
	// requests are those under way; door is before all ports.
	requests *shares.Places
	door     *strangers.Door
	// unknown is the certificate for hosts that have none.
	unknown *tls.Certificate
}

// listen serves one port until ctx ends. tell, if it is not nil, learns whether it is open.
func (r *router) listen(ctx context.Context, port int, secure bool, tell func(int, error)) {
	for told := ""; ; {
		listener, err := net.Listen("tcp", fmt.Sprintf(":%d", port))
		if tell != nil {
			tell(port, err)
		}
		if err == nil {
			r.serve(ctx, listener, port, secure)
			return
		}
		if text := err.Error(); text != told {
			r.Logger.Warn("nothing is served on this port", "port", port, "err", err)
			told = text
		}
		if !wait.For(ctx, listenInterval) {
			return
		}
	}
}

// serve serves one listener until ctx ends, and then lets requests under way end.
func (r *router) serve(ctx context.Context, listener net.Listener, at int, secure bool) {
	answer := func(w http.ResponseWriter, req *http.Request) { r.answer(w, req, at) }
	sorted := newSorter(r.door.Listener(counting{listener, r.Metrics.connections}), r, at)
	server := &http.Server{
		Handler: http.HandlerFunc(answer), ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: headerBytesMax,
		ErrorLog: slog.NewLogLogger(r.Logger.Handler(), slog.LevelDebug), Protocols: new(http.Protocols),
		TLSConfig: r.tlsConfig(at), ConnContext: strangers.WithConnection, ConnState: idleAgain,
	}
	server.Protocols.SetHTTP1(true)
	server.Protocols.SetHTTP2(secure)
	server.Protocols.SetUnencryptedHTTP2(!secure)
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		<-ctx.Done()
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
		defer cancel()
		if server.Shutdown(limited) != nil {
			_ = server.Close() // they had their time
		}
		sorted.drain(limited)
	}()
	err := error(nil)
	if secure {
		err = server.ServeTLS(sorted, "", "")
	} else {
		err = server.Serve(sorted)
	}
	if !errors.Is(err, http.ErrServerClosed) {
		r.Logger.Error("nothing is served any more on this port", "address", listener.Addr().String(), "err", err)
	}
	<-drained
}

// tlsConfig is that of connections whose TLS ends at the port.
func (r *router) tlsConfig(at int) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		return r.certificate(hello, at), nil
	}}
}

// misdirected tells whether a connection for one host would reach another, whose certificate the client has not seen (RFC 9110 7.4).
func (r *router) misdirected(req *http.Request, at int) bool {
	return req.TLS != nil && req.TLS.ServerName != "" && r.owner(at, req.TLS.ServerName) != r.owner(at, hostname(req.Host))
}

// handle answers one request to a port, or hands it to the proxy.
func (r *router) handle(w *answer, req *http.Request, at int) {
	if r.misdirected(req, at) {
		http.Error(w, "this connection is for another host", http.StatusMisdirectedRequest)
		return
	}
	name := hostname(req.Host)
	w.route = r.find(at, name, req)
	route := w.route
	leave, err := r.enter(route)
	if err != nil {
		w.Header().Set("Retry-After", "1")
		http.Error(w, err.Error(), http.StatusTooManyRequests)
		return
	}
	defer leave()
	strangers.KnownIn(req.Context()) // it counts for its namespace now
	client, _ := netip.ParseAddrPort(req.RemoteAddr)
	switch {
	case route == nil:
		http.Error(w, "no Ingress or route serves this address", http.StatusNotFound)
	case route.Change != nil && route.Change.CORS != nil && table.Preflight(req):
		route.Change.CORS.Permit(req, w.Header())
		w.WriteHeader(http.StatusNoContent)
	case route.Code != 0:
		http.Error(w, "the route to this address is not right: its conditions say why", route.Code)
	case route.Change != nil && route.Change.Redirect != nil:
		to := route.Change.Redirect
		w.Header().Set("Location", to.Location(name, req.URL, req.TLS != nil, r.asked(at)))
		w.WriteHeader(to.Code)
	case !route.Options.Allows(client.Addr()):
		http.Error(w, "you may not ask here", http.StatusForbidden)
	case route.Options.Redirect != "":
		http.Redirect(w, req, route.Options.Redirect, route.Options.RedirectCode)
	case req.TLS == nil && route.Options.RedirectTLS && r.Ports.HTTPS != 0:
		http.Redirect(w, req, r.secureURL(name, req), http.StatusPermanentRedirect)
	case len(route.Backend.Endpoints) == 0:
		http.Error(w, "no endpoint is ready", http.StatusServiceUnavailable)
	default:
		r.forward(w, req, route, at)
	}
}

// secureURL is the address of a request, with TLS.
func (r *router) secureURL(name string, req *http.Request) string {
	if r.Ports.HTTPS != 443 {
		name = net.JoinHostPort(name, fmt.Sprint(r.Ports.HTTPS))
	}
	return "https://" + name + req.URL.RequestURI()
}

// hostname is a Host header without its port.
func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return host
}
