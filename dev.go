package setpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/kubernetes"

	"github.com/setpoint-io/setpoint/agent/simulated"
	"github.com/setpoint-io/setpoint/apiserver/auditlog"
	"github.com/setpoint-io/setpoint/apiserver/auth/authconfig"
	"github.com/setpoint-io/setpoint/apiserver/auth/pki"
	"github.com/setpoint-io/setpoint/pace"
)

const (
	maxDevServers = 5
	// maxSimulatedNodes is the largest cluster that upstream promises to work.
	maxSimulatedNodes = 5000
	// rootlessNodes are simulated when containers cannot be run.
	rootlessNodes = 3
	devNodeName   = "node-1"
	loopback      = "127.0.0.1"
)

// DevConfig is a cluster in this process.
type DevConfig struct {
	DataDir, ImagesDir            string
	Servers, SimulatedNodes, Port int
	Authentication                authconfig.Config
	Audit                         auditlog.Config
	Logger                        *slog.Logger
	// Out is told when the cluster is ready, for people.
	Out io.Writer
}

var (
	errServers   = fmt.Errorf("--servers must be 1 to %d", maxDevServers)
	errSimulated = fmt.Errorf("--simulated-nodes must be 0 to %d", maxSimulatedNodes)
	errPort      = errors.New("--port must be 0 to 65535")
)

// Validate says what is wrong with the flags.
func (c *DevConfig) Validate() error {
	switch {
	case c.Servers < 1 || c.Servers > maxDevServers:
		return errServers
	case c.SimulatedNodes < 0 || c.SimulatedNodes > maxSimulatedNodes:
		return errSimulated
	case c.Port < 0 || c.Port > 65535:
		return errPort
	case c.DataDir == "":
		return errNoDataDir
	}
	return errors.Join(c.Authentication.Validate(), c.Audit.Validate())
}

// RunDev runs a cluster until ctx ends or a part of it fails. Containers of its
// node go on running; the next RunDev on the same data directory finds them.
func RunDev(ctx context.Context, c DevConfig) error {
	pace.GC()
	pace.WakeLess()
	unlock, err := lockDataDir(c.DataDir, "server")
	if err != nil {
		return err
	}
	defer unlock()
	d := &dev{config: c}
	c.Audit.Logger = c.Logger
	var stopAudit func() error
	if d.audit, stopAudit, err = auditlog.Start(c.Audit); err != nil {
		return err
	}
	if err := d.startServers(ctx); err != nil {
		return errors.Join(err, d.stop(), stopAudit())
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, server := range d.servers {
		group.Go(func() error { return server.Wait(ctx) })
	}
	group.Go(func() error { return d.runNodes(ctx) })
	group.Go(func() error { return d.announce(ctx) })
	return errors.Join(group.Wait(), d.stop(), stopAudit())
}

type dev struct {
	config  DevConfig
	trust   *pki.Cluster
	servers []*Server
	audit   *auditlog.Log
}

func (d *dev) startServers(ctx context.Context) error {
	listeners, addresses, err := devListeners(d.config.Servers, d.config.Port)
	if err != nil {
		return err
	}
	forPods := make([]net.Listener, len(addresses))
	for i := range addresses {
		var address string
		if forPods[i], address = listenForPods(listeners[i]); address != "" {
			addresses[i].Addresses = []string{address}
		}
	}
	if d.trust, err = pki.InitCluster(d.config.DataDir, addresses, time.Now()); err != nil {
		return err
	}
	for i, address := range addresses {
		server, err := StartServer(ctx, ServerConfig{
			Name: address.Name, DataDir: d.serverDir(i), Trust: d.trust, InitialServers: addresses,
			Listener: listeners[i], PodListener: forPods[i], Logger: d.config.Logger,
			Authentication: d.config.Authentication, AuditLog: d.audit,
		})
		if err != nil {
			return err
		}
		d.servers = append(d.servers, server)
	}
	return nil
}

// serverDir: the first replica keeps its state in the data directory itself.
func (d *dev) serverDir(i int) string {
	if i == 0 {
		return d.config.DataDir
	}
	return filepath.Join(d.config.DataDir, "server-"+strconv.Itoa(i+1))
}

// devListeners opens consecutive ports on loopback, or free ones.
func devListeners(n, port int) ([]net.Listener, []pki.Server, error) {
	var listeners []net.Listener
	var servers []pki.Server
	for i := range n {
		p := port
		if p != 0 {
			p += i
		}
		listener, err := listen(net.JoinHostPort(loopback, strconv.Itoa(p)))
		if err != nil {
			for _, l := range listeners {
				_ = l.Close()
			}
			return nil, nil, err
		}
		listeners = append(listeners, listener)
		servers = append(servers, pki.Server{Name: "server-" + strconv.Itoa(i+1), Endpoint: listener.Addr().String()})
	}
	return listeners, servers, nil
}

func (d *dev) announce(ctx context.Context) error {
	for _, server := range d.servers {
		if err := server.Ready(ctx); err != nil {
			return nil // ctx has ended
		}
	}
	path := filepath.Join(d.config.DataDir, AdminKubeconfig)
	fmt.Fprintf(d.config.Out, "Setpoint is ready.\n\n  export KUBECONFIG=%s\n  kubectl get nodes\n\nStop it with Ctrl-C; your pods and data stay.\n", path)
	return nil
}

// runNodes runs the nodes asked for: a real one as root, unless simulated ones
// were asked for instead.
func (d *dev) runNodes(ctx context.Context) error {
	if err := d.servers[0].Ready(ctx); err != nil {
		return nil // ctx has ended
	}
	nodes := d.config.SimulatedNodes
	if nodes == 0 && os.Geteuid() == 0 {
		return d.runNode(ctx)
	}
	if nodes == 0 {
		nodes = rootlessNodes
		fmt.Fprintf(d.config.Out, "Containers need root: run 'sudo setpoint dev' for real ones. Until then %d nodes are simulated: pods become Running but run nothing.\n", nodes)
	}
	client, err := d.client("system:setpoint:simulated-nodes", pki.GroupServers)
	if err != nil {
		return err
	}
	return simulated.Run(ctx, simulated.Config{Client: client, Nodes: nodes, Logger: d.config.Logger})
}

func (d *dev) runNode(ctx context.Context) error {
	listener, err := d.agentListener()
	if err != nil {
		return err
	}
	identity, err := d.trust.CA.IssueNode(devNodeName, []string{loopback}, time.Now())
	if err != nil {
		return err
	}
	client, err := d.client(pki.NodeUser(devNodeName), pki.GroupNodes)
	if err != nil {
		return err
	}
	return runNode(ctx, nodeConfig{
		name: devNodeName, dataDir: d.config.DataDir, imagesDir: d.config.ImagesDir,
		ip: net.ParseIP(loopback), listener: listener, identity: identity, client: client, logger: d.config.Logger,
	})
}

// agentListener prefers the kubelet's port; the node registers whichever it got.
func (d *dev) agentListener() (net.Listener, error) {
	if d.config.Port != 0 {
		if listener, err := net.Listen("tcp", net.JoinHostPort(loopback, strconv.Itoa(DefaultAgentPort))); err == nil {
			return listener, nil
		}
	}
	return net.Listen("tcp", net.JoinHostPort(loopback, "0"))
}

// client speaks to the first replica without a socket.
func (d *dev) client(name, group string) (kubernetes.Interface, error) {
	return kubernetes.NewForConfig(d.servers[0].restConfig(&user.DefaultInfo{Name: name, Groups: []string{group, user.AllAuthenticated}}, 0))
}

// stop ends all replicas at once: one after the other they would elect leaders
// that are about to stop.
func (d *dev) stop() error {
	var group errgroup.Group
	for _, server := range d.servers {
		group.Go(server.Stop)
	}
	return group.Wait()
}
