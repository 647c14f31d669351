package agent

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/setpoint-io/setpoint/agent/kubeletconfig"
	"github.com/setpoint-io/setpoint/agent/net/dns"
	"github.com/setpoint-io/setpoint/agent/net/hostfirewall"
	"github.com/setpoint-io/setpoint/agent/net/network/plan"
	"github.com/setpoint-io/setpoint/agent/net/network/probe"
	"github.com/setpoint-io/setpoint/agent/net/network/upkeep"
	"github.com/setpoint-io/setpoint/agent/net/policy"
	"github.com/setpoint-io/setpoint/agent/net/router"
	"github.com/setpoint-io/setpoint/agent/net/services"
	"github.com/setpoint-io/setpoint/agent/node"
	"github.com/setpoint-io/setpoint/agent/runtime/cri"
	"github.com/setpoint-io/setpoint/internal/revocation"
)

// ErrIncomplete is returned by Run for a Config that lacks a required field.
var ErrIncomplete = errors.New("agent: Config needs NodeName, Client, Runtime, DataDir and NodeIP")

// NodeNetwork is how a node reaches the pods of others.
type NodeNetwork interface {
	// Facts are what the other nodes have to know of this one.
	Facts() plan.Facts
	// Problems say which nodes' pods cannot be reached, and why.
	Problems() []string
	// Overlaps say which routes of the machine lead elsewhere with addresses of the cluster.
	Overlaps() []string
}

// PolicyNetwork is a network that keeps pods from what NetworkPolicies forbid.
type PolicyNetwork interface {
	policy.Network
	// Admit makes the network ask before it connects a pod.
	Admit(ask func(context.Context, policy.Sandbox) error)
}

// Course is how an agent begins and ends.
type Course struct {
	// Started is called once, when pods can run; progress fails then if what runs them has come to a stand. Nil is allowed.
	Started func(progress func(context.Context) error)
	// EndPodsOnStop ends the pods, by Settings.Shutdown, before Run returns. Otherwise they go on without the agent.
	EndPodsOnStop bool
}

// Sharing is how nodes have layers of images from each other. Without one of its fields they do not.
type Sharing struct {
	// Layers are those of this node's images, which other nodes may have.
	Layers Layers
	// PeerTLS is how those are asked for theirs.
	PeerTLS *tls.Config
}

// NodeMeta is what the Node is made with.
type NodeMeta struct {
	// Labels are added to the Node.
	Labels map[string]string
	// Claim are annotations that say whose the Node is. One that is there keeps its own.
	Claim map[string]string
}

// Config of one agent. NodeName, Client, Runtime, DataDir and NodeIP are required.
type Config struct {
	// NodeName is the name of the Node object.
	NodeName string
	// Client talks to the API as system:node:<NodeName>. Its rest.Config should
	// have no client-side rate limit (QPS -1): the default of 5 would be felt.
	Client kubernetes.Interface
	// Runtime runs the containers. If it is also a cri.Streamer, exec, attach
	// and port-forward are carried in-process. Run does not close it.
	Runtime cri.Runtime
	// DataDir holds pods/ and, without Settings.PodLogsDir, logs/; it must survive restarts of the agent.
	DataDir string
	// NodeIP is the node's InternalIP and the hostIP of its pods.
	NodeIP net.IP
	// NodeIP6 is the node's address of IPv6, if it has one; it counts in a cluster that has such addresses.
	NodeIP6 net.IP
	// Addresses replace the default InternalIP and Hostname.
	Addresses []corev1.NodeAddress
	NodeMeta
	// Version is the reported kubelet version; node.DefaultVersion when empty.
	Version string

	// Listener serves the kubelet endpoints. Nil: Port is opened on all addresses.
	Listener net.Listener
	// Port of the endpoints when Listener is nil; 10250 when 0.
	Port int
	Sharing
	// ServerTLS must ask for and verify the certificates of servers and nodes. Nil means
	// no TLS at all and is meant for tests.
	ServerTLS *tls.Config

	// Revoked knows who is shut out of the cluster, and may not ask here. Nil: nobody is.
	Revoked *revocation.Judge

	// ClusterDNS are the servers pods ask; empty means the node's own.
	ClusterDNS []string
	// ClusterDomain is "cluster.local" when empty.
	ClusterDomain string

	// PodNetwork asks from which ranges nodes have their pods' addresses; it may fail and is asked again. No pod
	// starts and no peer is told before it has answered. Nil: any range is accepted.
	PodNetwork func(ctx context.Context) (PodNetwork, error)
	// SetPeers is called with this node's pod CIDRs and address of IPv6, invalid before it has some, and all other nodes that have
	// some of the cluster's network, whenever any of that changes. Of nodes with the same one, the oldest has it. Nil is allowed.
	SetPeers func(own plan.Node, peers []plan.Node)
	// Network is how this node reaches the pods of others. Nil: SetPeers does nothing of the kind.
	Network NodeNetwork
	// Services leads the addresses of Services to their endpoints. Nil: something else does.
	Services services.Network
	// SetServers is told where the leader says that servers are, in what only servers write. Nil is allowed.
	SetServers func([]netip.AddrPort)
	// Announce is told which addresses of load balancers this node announces. Nil: none are announced.
	Announce func([]netip.Addr)
	// Policies is where NetworkPolicies are enforced. Nil: by something else, if at all.
	Policies PolicyNetwork
	// HostFirewall is where pods are kept from ports of this machine. Nil: they reach all of them.
	HostFirewall hostfirewall.Network
	// PodPlace lends a place of a pod, from which is probed what firewalls of this machine block. Nil: that is not probed.
	PodPlace func() (place probe.Place, giveBack func(), err error)
	// Upkeep holds what of these is on the machine. Nil: nobody does.
	Upkeep *upkeep.Keeper
	// Ingress is where this node serves Ingresses. The zero Ports serve none.
	Ingress router.Ports
	// AccessLog gets a line for each request to these ports and those of Gateways. Nil: there is none.
	AccessLog io.Writer
	// Gateways reads the objects of the Gateway API, which are served where Ingresses are. Nil: none are.
	Gateways dynamic.Interface
	// KernelLog opens the log of the machine's kernel, from which it is told that the machine is out of memory. Nil: nobody watches that.
	KernelLog func() (io.ReadCloser, error)
	// DNS gives this machine the address of the cluster's DNS, which the agent serves. Nil: others do.
	DNS dns.Network
	// GossipPort is where this machine's agent gossips, 0 if it does not or not yet. Nil: it does not.
	GossipPort func() int32
	// Registered is called once the Node exists. Nil is allowed.
	Registered func(*corev1.Node)

	// WithoutMounts keeps volumes in plain directories; see volumes.Config.
	WithoutMounts bool

	// Plugins makes the agent use the CSI drivers, device plugins and DRA drivers that open a socket in plugins_registry or register in
	// device-plugins below DataDir, and leave it to the controllers to attach volumes.
	Plugins bool

	// Settings are what a KubeletConfiguration says. The zero Settings remove no images and evict no pods.
	Settings kubeletconfig.Settings

	Course
	// CompletePod sets the defaults of a static pod and says what is wrong with it. Nil: nothing is.
	CompletePod func(*corev1.Pod) error

	// LeaseInterval is the time between Lease renewals: 10 s when 0, which suits
	// an agent without a session; with one, 60 s is enough.
	LeaseInterval time.Duration
	Logger        *slog.Logger
}

func (c *Config) setDefaults() error {
	if c.NodeName == "" || c.Client == nil || c.Runtime == nil || c.DataDir == "" || c.NodeIP == nil {
		return ErrIncomplete
	}
	if len(c.Addresses) == 0 {
		c.Addresses = []corev1.NodeAddress{
			{Type: corev1.NodeInternalIP, Address: c.NodeIP.String()},
			{Type: corev1.NodeHostName, Address: c.NodeName},
		}
	}
	if c.Version == "" {
		c.Version = node.DefaultVersion
	}
	if c.Port == 0 {
		c.Port = DefaultPort
	}
	if c.Settings.ClusterDNS != nil {
		c.ClusterDNS = c.Settings.ClusterDNS
	}
	c.ClusterDomain = cmp.Or(c.ClusterDomain, c.Settings.ClusterDomain, "cluster.local")
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return nil
}

// DefaultPort is the kubelet's port.
const DefaultPort = 10250

// runtimeReady fails while the runtime cannot start pods. As for a kubelet only CRI's two conditions count: those that runtimes have
// beside them, such as containerd's of deprecations and our own of walls, keep no pod from starting.
func runtimeReady(ctx context.Context, rt cri.Runtime) error {
	resp, err := rt.Status(ctx, false)
	if err != nil {
		return errors.New("container runtime is down: " + err.Error())
	}
	for _, required := range []string{runtimeapi.RuntimeReady, runtimeapi.NetworkReady} {
		all := resp.GetStatus().GetConditions()
		at := slices.IndexFunc(all, func(c *runtimeapi.RuntimeCondition) bool { return c.GetType() == required })
		switch {
		case at < 0:
			return errors.New("container runtime: does not say " + required)
		case !all[at].GetStatus():
			return errors.New("container runtime: " + required + " is false: " + all[at].GetReason() + " " + all[at].GetMessage())
		}
	}
	return nil
}
