package server

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
)

// Accept takes connections of a listener too, until Stop, which closes it.
func (s *Server) Accept(listener net.Listener) {
	s.accept(func() error { return s.http.ServeTLS(s.strangers.Listener(listener), "", "") })
}

// AcceptTLS is Accept with certificates and an authority for clients that are not the cluster's.
func (s *Server) AcceptTLS(listener net.Listener, config *tls.Config) {
	config = config.Clone()
	config.NextProtos = []string{"h2", "http/1.1"}
	s.accept(func() error { return s.http.Serve(tls.NewListener(s.strangers.Listener(listener), config)) })
}

func (s *Server) accept(serve func() error) {
	s.wg.Go(func() {
		if err := serve(); !errors.Is(err, http.ErrServerClosed) {
			s.config.Fatal(fmt.Errorf("listener: %w", err))
		}
	})
}
