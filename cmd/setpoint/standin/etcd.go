package standin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/pflag"
)

// headerTimeout bounds connections that say nothing.
const headerTimeout = 10 * time.Second

// runEtcd serves what envtest asks etcd: whether it is healthy.
func runEtcd(ctx context.Context, args []string, out, errOut io.Writer) error {
	flags := pflag.NewFlagSet(Etcd, pflag.ContinueOnError)
	clients := flags.StringSlice("listen-client-urls", []string{"http://127.0.0.1:2379"}, "where health is told")
	for _, name := range []string{"listen-peer-urls", "data-dir", "advertise-client-urls", "unsafe-no-fsync"} {
		flags.String(name, "", noEffect+"the API server keeps its own store")
	}
	if help, err := parse(flags, args, out, errOut); help || err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/health", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"health":"true","reason":""}`) })
	server := &http.Server{Handler: mux, ReadHeaderTimeout: headerTimeout}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	done := make(chan error, len(*clients))
	for _, client := range *clients {
		at, err := url.Parse(client)
		if err != nil || at.Host == "" {
			return fmt.Errorf("--listen-client-urls: %q is no URL", client)
		}
		listener, err := net.Listen("tcp", at.Host)
		if err != nil {
			return errors.Join(err, server.Close())
		}
		go func() { done <- server.Serve(listener) }()
	}
	if err := <-done; !errors.Is(err, http.ErrServerClosed) {
		return errors.Join(err, server.Close())
	}
	return nil
}
