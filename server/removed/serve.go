package removed

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/setpoint-io/setpoint/internal/strangers"
	"github.com/setpoint-io/setpoint/internal/trust"
)

const (
	// requestTimeout bounds a request, whose body may be sent slowly, and idleTimeout a connection that says nothing.
	requestTimeout = 10 * time.Second
	idleTimeout    = 10 * time.Second
	// headerBytesMax is how much is read of a request.
	headerBytesMax = 64 << 10
)

// Serve answers on the listener, which it closes, until ctx ends. live is the certificate of the server.
func Serve(ctx context.Context, listener net.Listener, live *trust.Live, handler http.Handler, logger *slog.Logger) error {
	config, err := live.ServerConfig()
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	config.ClientAuth = tls.NoClientCert // whoever it is, and however old his certificate is, is told
	server := &http.Server{
		Handler: handler, TLSConfig: config, MaxHeaderBytes: headerBytesMax,
		ReadTimeout: requestTimeout, WriteTimeout: requestTimeout, IdleTimeout: idleTimeout,
		ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelDebug),
	}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	door := strangers.NewDoor(strangers.Limit())
	if err := server.ServeTLS(door.Listener(listener), "", ""); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
