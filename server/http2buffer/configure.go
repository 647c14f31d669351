package http2buffer

import (
	"context"
	"crypto/tls"
	"net/http"

	"golang.org/x/net/http2"
)

// Configure lets s speak HTTP/2 as protocol says, over connections that gather what
// is written to them. Call it before s serves.
func Configure(s *http.Server, protocol *http2.Server) error {
	if err := http2.ConfigureServer(s, protocol); err != nil {
		return err
	}
	s.TLSNextProto[http2.NextProtoTLS] = func(server *http.Server, c *tls.Conn, handler http.Handler) {
		protocol.ServeConn(&conn{secured: c}, &http2.ServeConnOpts{
			Context: connectionContext(handler), BaseConfig: server, Handler: handler,
		})
	}
	return nil
}

// connectionContext is what http.Server.ConnContext made: net/http hands it to the
// protocols of TLSNextProto in a method of their handler.
func connectionContext(handler http.Handler) context.Context {
	if based, ok := handler.(interface{ BaseContext() context.Context }); ok {
		return based.BaseContext()
	}
	return context.Background()
}
