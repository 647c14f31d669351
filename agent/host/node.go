package host

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"

	"k8s.io/client-go/kubernetes"

	"github.com/setpoint-io/setpoint/agent"
	"github.com/setpoint-io/setpoint/agent/collect"
	"github.com/setpoint-io/setpoint/agent/cri"
	"github.com/setpoint-io/setpoint/agent/cri/embedded"
	"github.com/setpoint-io/setpoint/agent/cri/remote"
	"github.com/setpoint-io/setpoint/agent/machine"
	"github.com/setpoint-io/setpoint/agent/network"
)

// Cluster is what a node must know of its cluster and cannot get from the Kubernetes API.
type Cluster struct {
	// PodNetwork asks the servers from where pods have their addresses, and how large each
	// node's part is. Older servers do not say: theirs is the default.
	PodNetwork func(context.Context, kubernetes.Interface) (cidr netip.Prefix, nodeMaskSize int, err error)
	// Services covers the addresses of Services.
	Services netip.Prefix
}

// NodeConfig is one node in this process.
type NodeConfig struct {
	Name    string
	Cluster Cluster
	// DataDir holds images, containers and volumes; ImagesDir, if not empty, archives to load.
	DataDir, ImagesDir string
	// RuntimeEndpoint is the socket of containerd or CRI-O; "": the embedded runtime.
	RuntimeEndpoint string
	IP              net.IP
	// Listener and ServerTLS are where servers reach the agent.
	Listener  net.Listener
	ServerTLS *tls.Config
	Client    kubernetes.Interface
	// MaxPods is how many pods the node takes; 0: upstream's default.
	MaxPods int64
	// ImageCollection says which images go when the disk fills up; the zero Policy removes none.
	ImageCollection collect.Policy
	// Session says that a session proves the node's life, so that Leases are renewed seldom.
	Session bool
	Logger  *slog.Logger
}

// RunNode opens the runtime and runs the agent on it.
func RunNode(ctx context.Context, c NodeConfig) error {
	runtime, err := c.runtime(ctx)
	if err != nil {
		return err
	}
	defer runtime.Close(context.WithoutCancel(ctx))
	machine.SpareFromOOM(c.Logger)
	routes := network.NewRoutes(network.RoutesConfig{Logger: c.Logger})
	var translation network.Translation
	config := agent.Config{
		NodeName: c.Name, Client: c.Client, Runtime: runtime, DataDir: c.DataDir, NodeIP: c.IP,
		Listener: c.Listener, ServerTLS: c.ServerTLS, MaxPods: c.MaxPods, ImageCollection: c.ImageCollection, Logger: c.Logger,
		PodNetwork: func(ctx context.Context) (agent.PodNetwork, error) { return c.podNetwork(ctx, runtime) },
		SetPeers:   func(peers []agent.Peer) { setRoutes(routes, peers, c.Logger) }, SetServices: translation.SetServices,
	}
	if c.Session {
		config.LeaseInterval = sessionLeaseInterval
	}
	return agent.Run(ctx, config)
}

// podNetwork asks the servers, and tells the runtime what is inside the cluster.
func (c NodeConfig) podNetwork(ctx context.Context, runtime cri.Runtime) (agent.PodNetwork, error) {
	cidr, nodeMaskSize, err := c.Cluster.PodNetwork(ctx, c.Client)
	if err != nil {
		return agent.PodNetwork{}, err
	}
	if own, ok := runtime.(*embedded.Runtime); ok {
		own.SetClusterCIDR(cidr)
	}
	return agent.PodNetwork{PodCIDR: cidr, NodeMaskSize: nodeMaskSize}, nil
}

func (c NodeConfig) runtime(ctx context.Context) (cri.Runtime, error) {
	if c.RuntimeEndpoint != "" {
		return remote.New(ctx, remote.Config{Endpoint: c.RuntimeEndpoint})
	}
	images := c.ImagesDir
	if images == "" {
		images = filepath.Join(c.DataDir, "images")
	}
	if err := os.MkdirAll(images, 0o700); err != nil {
		return nil, err
	}
	return embedded.New(embedded.Config{
		DataDir: filepath.Join(c.DataDir, "runtime"), ImagesDir: images, NodeName: c.Name,
		ServiceCIDR: c.Cluster.Services, Logger: c.Logger,
	})
}
