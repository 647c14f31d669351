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
	"sync/atomic"
	"time"

	"golang.org/x/net/netutil"

	"github.com/setpoint-io/setpoint/agent/router/table"
	"github.com/setpoint-io/setpoint/agent/wait"
)

const (
	// connectionsMax is how many clients are connected to one port at once; others wait to be accepted.
	connectionsMax = 16384
	// headerTimeout is how long a client may take for a request's headers, idleTimeout how long a connection waits for the next request.
	headerTimeout = 30 * time.Second
	idleTimeout   = 75 * time.Second
	// headerBytesMax is how large all headers of a request may be.
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
	secrets *secrets
	proxy   *httputil.ReverseProxy
	// unknown is the certificate for hosts that have none.
	unknown *tls.Certificate
}

// listen serves one port until ctx ends.
func (r *router) listen(ctx context.Context, port int, secure bool) {
	for told := ""; ; {
		listener, err := net.Listen("tcp", fmt.Sprintf(":%d", port))
		if err == nil {
			r.serve(ctx, listener, secure)
			return
		}
		if text := err.Error(); text != told {
			r.Logger.Warn("Ingresses are not served on this port", "port", port, "err", err)
			told = text
		}
		if !wait.For(ctx, listenInterval) {
			return
		}
	}
}

// serve serves one listener until ctx ends, and then lets requests under way end.
func (r *router) serve(ctx context.Context, listener net.Listener, secure bool) {
	server := &http.Server{
		Handler: http.HandlerFunc(r.handle), ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: headerBytesMax,
		ErrorLog: slog.NewLogLogger(r.Logger.Handler(), slog.LevelDebug), Protocols: new(http.Protocols),
		TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: r.certificate},
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
	}()
	listener = netutil.LimitListener(listener, connectionsMax)
	err := error(nil)
	if secure {
		err = server.ServeTLS(listener, "", "")
	} else {
		err = server.Serve(listener)
	}
	if !errors.Is(err, http.ErrServerClosed) {
		r.Logger.Error("Ingresses are not served any more", "address", listener.Addr().String(), "err", err)
	}
	<-drained
}

func (r *router) certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	if c := r.table.Load().Certificate(hello.ServerName); c != nil {
		return c, nil
	}
	return r.unknown, nil
}

// handle answers one request, or hands it to the proxy.
func (r *router) handle(w http.ResponseWriter, req *http.Request) {
	served, name := r.table.Load(), hostname(req.Host)
	if req.TLS != nil && req.TLS.ServerName != "" && served.Certificate(req.TLS.ServerName) != served.Certificate(name) {
		// A connection for one host must not reach another, whose certificate the client has not seen (RFC 9110 7.4).
		http.Error(w, "this connection is for another host", http.StatusMisdirectedRequest)
		return
	}
	route := served.Find(name, req.URL.Path)
	client, _ := netip.ParseAddrPort(req.RemoteAddr)
	switch {
	case route == nil:
		http.Error(w, "no Ingress serves this address", http.StatusNotFound)
	case !route.Options.Allows(client.Addr()):
		http.Error(w, "you may not ask here", http.StatusForbidden)
	case route.Options.Redirect != "":
		http.Redirect(w, req, route.Options.Redirect, route.Options.RedirectCode)
	case req.TLS == nil && route.Options.RedirectTLS && r.Ports.HTTPS != 0:
		http.Redirect(w, req, r.secureURL(name, req), http.StatusPermanentRedirect)
	case len(route.Backend.Endpoints) == 0:
		http.Error(w, "no endpoint is ready", http.StatusServiceUnavailable)
	default:
		r.forward(w, req, route)
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
