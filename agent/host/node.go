package host

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/setpoint-io/setpoint/agent"
	"github.com/setpoint-io/setpoint/agent/base/machine"
	"github.com/setpoint-io/setpoint/agent/base/oom"
	"github.com/setpoint-io/setpoint/agent/kubeletconfig"
	"github.com/setpoint-io/setpoint/agent/net/dns"
	"github.com/setpoint-io/setpoint/agent/net/network"
	"github.com/setpoint-io/setpoint/agent/net/network/announce"
	"github.com/setpoint-io/setpoint/agent/net/network/ownaddress"
	"github.com/setpoint-io/setpoint/agent/net/network/plan"
	"github.com/setpoint-io/setpoint/agent/net/network/upkeep"
	"github.com/setpoint-io/setpoint/agent/net/policy/table"
	"github.com/setpoint-io/setpoint/agent/runtime/cri"
	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded"
	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/registries"
	"github.com/setpoint-io/setpoint/agent/runtime/cri/remote"
	"github.com/setpoint-io/setpoint/internal/revocation"
	"github.com/setpoint-io/setpoint/internal/servicerange"
)

// Cluster is what a node must know of its cluster and cannot get from the Kubernetes API.
type Cluster struct {
	// PodNetwork asks the servers from where pods and Services have their addresses, and how large each node's parts are. Older
	// servers do not say: theirs are the defaults.
	PodNetwork func(context.Context, kubernetes.Interface) (agent.PodNetwork, error)
	// CompletePod sets the defaults of a pod and says what is wrong with it, as the API does.
	CompletePod func(*corev1.Pod) error
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
	// IP6 is the node's address of IPv6; nil: one of the link that has IP, if there is any.
	IP6 net.IP
	// Loopback, if not nil, is where servers of this machine reach the agent, and IP is not.
	Loopback net.IP
	// Listener and ServerTLS are where servers reach the agent.
	Listener  net.Listener
	ServerTLS *tls.Config
	// PeerTLS is how other nodes' agents are asked for layers of images; nil: they are not.
	PeerTLS *tls.Config
	Client  kubernetes.Interface
	// Servers are "host:port".
	Servers []string
	// EndPodsOnStop ends the pods when the agent ends, within the times that Settings has for it.
	EndPodsOnStop bool
	// Settings are what a KubeletConfiguration says.
	Settings kubeletconfig.Settings
	// NodePortsOnLoopback opens node ports on 127.0.0.1 too: all pods must be on this machine.
	NodePortsOnLoopback bool
	// Ingress is where this node serves Ingresses; the zero Ports serve none.
	Ingress IngressPorts
	// AccessLog gets a line of JSON for each request there. Nil: there is none.
	AccessLog io.Writer
	// Gateways reads the objects of the Gateway API; nil: no Gateways are served.
	Gateways dynamic.Interface
	// PodNetwork is how pods of other nodes are reached; empty means auto.
	PodNetwork plan.Mode
	// GossipPort is that of the pool's member in this process, 0 before there is one; nil: there is none.
	GossipPort func() int32
	// Session says that a session proves the node's life, so that Leases are renewed seldom.
	Session bool
	// traffic is what Services have no part in, with the network that is told so; nil: RunNode makes it.
	traffic *traffic
	// claim are annotations that say whose a Node is that is made here.
	claim map[string]string
	// revoked knows who is shut out of the cluster; nil: nobody is.
	revoked *revocation.Judge
	// started is agent.Config's; nil is allowed.
	started func(progress func(context.Context) error)
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
	if c.traffic == nil {
		c.traffic = newTraffic(c.NodePortsOnLoopback, c.Servers, c.ports(), c.Logger)
		c.traffic.Look(ctx)
	}
	translation := c.traffic.network
	ip, _ := netip.AddrFromSlice(c.IP)
	secondIP := c.secondIP()
	ip6, _ := netip.AddrFromSlice(secondIP)
	announcer := announce.New(ip.Unmap(), ip6, c.Logger)
	routes, err := network.NewRoutes(network.RoutesConfig{
		Mode: c.PodNetwork, Node: c.Name, IP: ip.Unmap(), Bridge: network.DefaultBridge, DataDir: c.DataDir, Logger: c.Logger,
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var children sync.WaitGroup
	defer children.Wait()
	defer cancel()
	children.Go(func() { announcer.Run(ctx) })
	children.Go(func() { routes.Run(ctx) })
	children.Go(func() { c.traffic.Run(ctx) })
	keeper := upkeep.New(upkeep.Config{Changes: changes(c.Logger, routes), Logger: c.Logger})
	names := ownaddress.New(dns.Port, dns.DefaultPorts.DNS)
	keeper.Hold(names.Thing())
	config := agent.Config{
		NodeName: c.Name, Client: c.Client, NodeMeta: agent.NodeMeta{Claim: c.claim},
		Runtime: runtime, DataDir: c.DataDir, NodeIP: c.IP, NodeIP6: secondIP,
		Listener: c.Listener, ServerTLS: c.ServerTLS, Revoked: c.revoked, Settings: c.Settings, CompletePod: c.Cluster.CompletePod,
		Course: agent.Course{Started: c.started, EndPodsOnStop: c.EndPodsOnStop}, GossipPort: c.GossipPort,
		Ingress: c.Ingress, AccessLog: c.AccessLog, Gateways: c.Gateways, Logger: c.Logger, Plugins: true, KernelLog: oom.KernelLog,
		ClusterDNS: []string{servicerange.DNS(servicerange.Default).String()}, DNS: names,
		PodNetwork: func(ctx context.Context) (agent.PodNetwork, error) {
			return c.podNetwork(ctx, runtime, translation, routes)
		},
		SetPeers: func(own plan.Node, peers []plan.Node) {
			c.traffic.setPeers(peers)
			translation.SetPods(own.PodCIDR, own.PodCIDR6)
			_ = routes.SetPeers(own, peers) // it has said what is wrong
		},
		SetServers: c.traffic.Servers,
		Network:    routes, Services: translation, Announce: announcer.Set, Upkeep: keeper,
	}
	if own, ok := runtime.(*embedded.Runtime); ok {
		config.Policies = policyNetwork{table.New(network.DefaultBridge), own}
		config.HostFirewall, config.PodPlace = c.hostFirewall(), own.Network().Lend
		keeper.Hold(own.Network().Things()...)
		config.Layers, config.PeerTLS = own.Images(), c.PeerTLS
		children.Go(func() { serveImages(ctx, c.DataDir, own, c.Logger) })
	}
	if c.Loopback != nil && !c.Loopback.Equal(c.IP) {
		config.Addresses = []corev1.NodeAddress{
			{Type: corev1.NodeInternalIP, Address: c.IP.String()}, {Type: corev1.NodeInternalIP, Address: c.Loopback.String()},
			{Type: corev1.NodeHostName, Address: c.Name},
		}
	}
	children.Go(func() { keeper.Run(ctx) })
	if c.Session {
		config.LeaseInterval = sessionLeaseInterval
	}
	return agent.Run(ctx, config)
}

// changes wake the keeper, and the ways to other nodes.
func changes(logger *slog.Logger, routes *network.Routes) func(context.Context, func()) {
	follow := upkeep.Notifications(logger)
	return func(ctx context.Context, wake func()) {
		follow(ctx, func() {
			wake()
			routes.Changed()
		})
	}
}

// podNetwork asks the servers, and tells the runtime, the translation of Services and the routes what is inside the cluster.
func (c NodeConfig) podNetwork(
	ctx context.Context, runtime cri.Runtime, translation *network.Translation, routes *network.Routes,
) (agent.PodNetwork, error) {
	inForce, err := c.Cluster.PodNetwork(ctx, c.Client)
	if err != nil {
		return agent.PodNetwork{}, err
	}
	ranges := inForce.Ranges
	translation.SetRanges(ranges)
	if own, ok := runtime.(*embedded.Runtime); ok {
		own.SetRanges(ranges)
	} else {
		ranges.Pods, ranges.Pods6 = netip.Prefix{}, netip.Prefix{} // another runtime has a network of its own, with routes to pods
	}
	routes.SetRanges(ranges)
	return inForce, nil
}

func (c NodeConfig) secondIP() net.IP {
	if c.IP6 != nil {
		return c.IP6
	}
	second, err := network.SecondAddress(c.IP)
	if err != nil {
		c.Logger.Warn("this machine's addresses of IPv6 cannot be read", "err", err)
	}
	return second
}

func (c NodeConfig) runtime(ctx context.Context) (cri.Runtime, error) {
	if err := ValidateRuntime(c.Settings, c.RuntimeEndpoint); err != nil {
		return nil, err
	}
	if c.RuntimeEndpoint != "" {
		return remote.New(ctx, remote.Config{Endpoint: c.RuntimeEndpoint})
	}
	places, err := openRegistries(c.Settings.Registries)
	if err != nil {
		return nil, err
	}
	images := c.ImagesDir
	if images == "" {
		images = filepath.Join(c.DataDir, "images")
	}
	if err := os.MkdirAll(images, 0o700); err != nil {
		return nil, err
	}
	return embedded.New(embedded.Config{
		DataDir: runtimeDir(c.DataDir), ImagesDir: images, Registries: places, NodeName: c.Name,
		PodPIDsMax:          c.Settings.PodPIDsMax,
		ReservedMemoryBytes: c.Settings.Reserved.Memory().Value(), ReservedPIDs: c.Settings.ReservedPIDs(),
		Logger: c.Logger,
	})
}

// ValidateRuntime says what the settings want that this runtime cannot do, and what is wrong in the file of --registries. An empty
// endpoint is the embedded runtime.
func ValidateRuntime(s Settings, endpoint string) error {
	switch {
	case endpoint != "" && s.PodPIDsMax > 0:
		return errRemotePIDs
	case endpoint != "" && s.Registries != "":
		return errRemoteRegistries
	}
	_, err := openRegistries(s.Registries)
	return err
}

// openRegistries reads what --registries names.
func openRegistries(path string) (registries.Config, error) {
	c, err := registries.Open(path)
	if err != nil {
		return c, fmt.Errorf("--registries: %w", err)
	}
	return c, nil
}

var errRemoteRegistries = errors.New("--registries: not supported with another container runtime, which has its own configuration")

var errRemotePIDs = errors.New("podPidsLimit: not supported with another container runtime: it makes the groups of pods")
