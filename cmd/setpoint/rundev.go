package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strconv"

	"golang.org/x/sync/errgroup"

	"github.com/setpoint-io/setpoint"
	"github.com/setpoint-io/setpoint/agent/host"
	"github.com/setpoint-io/setpoint/internal/process"
)

const (
	// rootlessNodes are simulated when containers cannot be run.
	rootlessNodes = 3
	devNodeName   = "node-1"
)

var (
	errNoReplica = errors.New("--servers must be 1 to 5")
	errNoDataDir = errors.New("--data-dir must not be empty")
)

// devConfig is what `setpoint dev` runs.
type devConfig struct {
	setpoint.Config
	imagesDir  string
	registries string
	// kubeletConfig is the file that node was read from.
	kubeletConfig string
	walls         wallFlags
	node          host.Settings
	ingress       host.IngressPorts
	accessLog     bool
	// out is told when the cluster is ready, for people.
	out io.Writer
}

// validate refuses what the library would choose by itself.
func (c *devConfig) validate() error {
	switch {
	case c.Replicas < 1:
		return errNoReplica
	case c.DataDir == "":
		return errNoDataDir
	}
	if err := host.ValidateIngress(c.ingress); err != nil {
		return err
	}
	return c.Validate()
}

// runDev runs a cluster until ctx ends or a part of it fails. Containers of its
// node go on running; the next start on the same data directory finds them.
func runDev(ctx context.Context, c devConfig) error {
	process.GC()
	process.WakeLess()
	contained := c.SimulatedNodes == 0 && os.Geteuid() == 0
	if c.SimulatedNodes == 0 && !contained {
		c.SimulatedNodes = rootlessNodes
		fmt.Fprintf(
			c.out,
			"Containers need root: run 'sudo setpoint dev' for real ones. Until then %d nodes are simulated: pods become Running but run nothing.\n",
			rootlessNodes,
		)
	}
	c.OpenToPods, c.Lessons = true, true
	c.Logger = slog.New(untilEnd{c.Logger.Handler(), ctx})
	cluster, err := setpoint.Start(ctx, c.Config)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return cluster.Wait(ctx) })
	group.Go(func() error {
		if err := cluster.Ready(ctx); err != nil {
			return nil // ctx has ended
		}
		fmt.Fprintf(c.out, "%s\n\n  export KUBECONFIG=%s\n  kubectl get nodes\n  setpoint ui\n\nStop it with Ctrl-C; your pods and data stay.\n",
			paint(c.out, bold, "Setpoint is ready."), cluster.Kubeconfig())
		return nil
	})
	if contained {
		group.Go(func() error { return c.runNode(ctx, cluster) })
	}
	return errors.Join(group.Wait(), cluster.Stop())
}

// runNode runs the pods of this machine as soon as the cluster serves.
func (c *devConfig) runNode(ctx context.Context, cluster *setpoint.Cluster) error {
	if err := cluster.Ready(ctx); err != nil {
		return nil // ctx has ended
	}
	unlock, err := process.Lock(c.DataDir, process.AgentRole)
	if err != nil {
		return err
	}
	defer unlock()
	listener, err := c.agentListener()
	if err != nil {
		return err
	}
	return cluster.RunNode(ctx, devNodeName, func(ctx context.Context, n setpoint.Node) error {
		return host.RunNode(ctx, host.NodeConfig{
			Name: n.Name, Cluster: ofCluster, DataDir: n.DataDir, ImagesDir: c.imagesDir, IP: n.IP, Loopback: n.Loopback,
			Listener: listener, ServerTLS: n.ServerTLS, Client: n.Client, Settings: c.node,
			NodePortsOnLoopback: true, Ingress: c.ingress, AccessLog: writerIf(c.accessLog, c.out), Gateways: n.Gateways, Logger: c.Logger,
		})
	})
}

// agentListener prefers the kubelet's port; the node registers whichever it got.
func (c *devConfig) agentListener() (net.Listener, error) {
	const loopback = "127.0.0.1"
	if c.Port != 0 {
		if listener, err := net.Listen("tcp", net.JoinHostPort(loopback, strconv.Itoa(host.DefaultPort))); err == nil {
			return listener, nil
		}
	}
	return net.Listen("tcp", net.JoinHostPort(loopback, "0"))
}
