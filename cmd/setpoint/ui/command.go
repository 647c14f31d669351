package ui

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/net/netutil"
	"k8s.io/client-go/rest"
)

const (
	// connectionsMax is how many connections are open at a time; a browser has six. More wait.
	connectionsMax = 64
	// headerBytesMax and headerTimeout bound what a browser says of its request before its body.
	headerBytesMax = 16 << 10
	headerTimeout  = 10 * time.Second
	// idleTimeout closes connections over which nothing goes.
	idleTimeout = 2 * time.Minute
	portMax     = 65535
)

var errPort = errors.New("--port must be 0, for a free one, to 65535")

// Shell is what all commands share.
type Shell struct {
	// KubeconfigUsage describes the flag of this name.
	KubeconfigUsage string
	// Finish adds the flags of every command.
	Finish func(cmd *cobra.Command) *cobra.Command
	// Servers are how to reach each server of the kubeconfig's cluster, by the name of its context, the current one first.
	Servers func(kubeconfig string) ([]Server, error)
	// WhatIf answers a question in JSON with what may be encoded as JSON, or refuses. It asks one server after the other.
	WhatIf func(ctx context.Context, servers []*rest.Config, question []byte) (any, error)
	// Mistake is an error of the command line.
	Mistake func(error) error
}

// Server is one server of the cluster, and the credentials for it.
type Server struct {
	Name   string
	Config *rest.Config
}

// Command is `setpoint ui`.
func (s *Shell) Command() *cobra.Command {
	var kubeconfig string
	var port int
	cmd := &cobra.Command{
		Use: "ui", Short: "Serve a page of the cluster on this machine: servers, nodes, pods, loops, and what was",
		Long: "Serve a page that shows servers, nodes and pods, what each control loop wants, sees and does, and an object with its owners,\n" +
			"causes and history. A slider shows the cluster as it was.\n\n" +
			"It listens on 127.0.0.1 only, and asks the servers with the kubeconfig's credentials, as 'kubectl proxy' does. The address has\n" +
			"a secret, which is another one at each start. Nothing can be changed through it but a cluster to learn on, as 'setpoint dev' runs:\n" +
			"its nodes, servers and pods can be killed and healed, its loops held, its clock moved. It passes on no values of Secrets.",
		Example: "  setpoint ui\n  setpoint ui --port 8700 --kubeconfig admin.kubeconfig",
	}
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", s.KubeconfigUsage)
	cmd.Flags().IntVar(&port, "port", 0, "port on 127.0.0.1; 0: a free one")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if port < 0 || port > portMax {
			return s.Mistake(errPort)
		}
		servers := newServers(func() ([]Server, error) { return s.Servers(kubeconfig) })
		if err := servers.read(); err != nil {
			return err
		}
		return serve(cmd.Context(), cmd.OutOrStdout(), port, servers, s.WhatIf)
	}
	return s.Finish(cmd)
}

// serve serves the page until ctx ends.
func serve(ctx context.Context, out io.Writer, port int, servers *servers, whatIf asker) error {
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return fmt.Errorf("%w: choose another --port, or 0 for a free one", err)
	}
	secret := rand.Text()
	server := &http.Server{
		Handler: newDoor(secret, servers, whatIf), ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: headerBytesMax,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ErrorLog:    slog.NewLogLogger(slog.DiscardHandler, slog.LevelError), // browsers that went away
	}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	fmt.Fprintf(out, "The page of your cluster, for this machine only:\n\n  http://%s/%s/\n\nStop it with Ctrl-C.\n", listener.Addr(), secret)
	if err := server.Serve(netutil.LimitListener(listener, connectionsMax)); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return ctx.Err()
}
