package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/agent"
	"github.com/setpoint-io/setpoint/agent/base/machine"
	"github.com/setpoint-io/setpoint/agent/base/private"
	"github.com/setpoint-io/setpoint/agent/net/network/plan"
	"github.com/setpoint-io/setpoint/agent/net/router"
	"github.com/setpoint-io/setpoint/agent/node"
	"github.com/setpoint-io/setpoint/agent/node/gossip"
	"github.com/setpoint-io/setpoint/agent/node/knownservers"
	"github.com/setpoint-io/setpoint/agent/node/revoked"
	"github.com/setpoint-io/setpoint/internal/clusterlife"
	"github.com/setpoint-io/setpoint/internal/failover"
	"github.com/setpoint-io/setpoint/internal/process"
	"github.com/setpoint-io/setpoint/internal/reserved"
	"github.com/setpoint-io/setpoint/internal/revocation"
	"github.com/setpoint-io/setpoint/internal/sdnotify"
	"github.com/setpoint-io/setpoint/internal/trust"
)

// PodNetworkMode is how pods of other nodes are reached.
type PodNetworkMode = plan.Mode

// ParsePodNetwork reads --pod-network.
func ParsePodNetwork(text string) (PodNetworkMode, error) { return plan.ParseMode(text) }

// Options are the flags of `setpoint agent`.
type Options struct {
	Name, TokenFile, DataDir, ImagesDir string
	Servers                             []string
	RuntimeEndpoint, NodeIP             string
	Port                                int
	Settings                            Settings
	EndPodsOnStop                       bool
	GossipAddress                       string
	Ingress                             router.Ports
	AccessLog                           io.Writer
	PodNetwork                          PodNetworkMode
	Cluster                             Cluster
	Logger                              *slog.Logger
}

// DefaultPort is where servers reach an agent, DefaultMaxPods how many pods a node takes,
// upstream's number.
const (
	DefaultPort    = agent.DefaultPort
	DefaultMaxPods = node.DefaultMaxPods
)

var (
	errNoDataDir  = errors.New("--data-dir must not be empty")
	errNoServers  = errors.New("--servers must name at least one server")
	errBadNodeIP  = errors.New("--node-ip is neither an IP address nor one of IPv4 and one of IPv6 with a comma between them")
	errNoShutdown = errors.New("--end-pods-on-stop needs shutdownGracePeriod or shutdownGracePeriodByPodPriority in --kubelet-config")
	errBadMaxPods = errors.New("--max-pods must be at least 1")
	errBadIngress = errors.New("--ingress-http-port and --ingress-https-port: want two ports, or 0")
)

// Validate says what is wrong with the flags, and in the files that they name.
func (o *Options) Validate() error {
	switch {
	case len(o.Servers) == 0:
		return errNoServers
	case o.DataDir == "":
		return errNoDataDir
	case o.EndPodsOnStop && len(o.Settings.Shutdown) == 0:
		return errNoShutdown
	case o.Settings.MaxPods < 1:
		return errBadMaxPods
	}
	if _, _, err := parseNodeIP(o.NodeIP); err != nil {
		return err
	}
	if err := ValidateIngress(o.Ingress); err != nil {
		return err
	}
	if err := o.Settings.Images.Validate(); err != nil {
		return err
	}
	if err := ValidateRuntime(o.Settings, o.RuntimeEndpoint); err != nil {
		return err
	}
	for _, server := range o.Servers {
		if _, _, err := net.SplitHostPort(server); err != nil {
			return fmt.Errorf("--servers %q: want host:port", server)
		}
	}
	if o.Name == "" {
		host, err := os.Hostname()
		if err != nil {
			return err
		}
		o.Name = strings.ToLower(host)
	}
	return trust.ValidateNodeName(o.Name)
}

// IngressPorts are where a node serves Ingresses.
type IngressPorts = router.Ports

// ValidateIngress says what is wrong with the ports.
func ValidateIngress(p IngressPorts) error {
	if min(p.HTTP, p.HTTPS) < 0 || max(p.HTTP, p.HTTPS) > 65535 || p.Any() && p.HTTP == p.HTTPS {
		return errBadIngress
	}
	return nil
}

// Run joins the cluster if need be and runs this machine's pods until ctx
// ends. Containers outlive it.
func Run(ctx context.Context, o Options) error {
	if err := machine.Prepare(); err != nil {
		return err
	}
	process.AgentGC()
	process.MemoryLimit(o.Logger)
	unlock, err := process.Lock(o.DataDir, process.AgentRole)
	if err != nil {
		return err
	}
	defer unlock()
	started := o.managed(ctx)
	known := o.known()
	ip, ip6, err := o.nodeIP(slices.Concat(o.Servers, known.Now())) // by what was typed first: the address must not change by itself
	if err != nil {
		return err
	}
	traffic := o.traffic(known.Now())
	traffic.Look(ctx) // what an earlier agent has left may keep this one from the servers
	life, err := o.life()
	if err != nil {
		return err
	}
	shutOut := revoked.Open(o.DataDir, private.WriteFile, o.Logger)
	membership, err := o.join(ctx, life, known, shutOut.Judge)
	if err != nil {
		return err
	}
	own := membership.Node()
	client, gateways, err := failoverClients(membership.Client(), known, life, shutOut.Judge)
	if err != nil {
		return err
	}
	listener, err := process.Listen(net.JoinHostPort("", strconv.Itoa(o.Port)), process.PortFlag)
	if err != nil {
		return err
	}
	serverTLS, errServing := membership.Serving().AgentConfig(own.Identity.CAPEM)
	peerTLS, errPeer := membership.Client().PeerConfig()
	claim, errClaim := claimOf(own.Identity)
	if err := errors.Join(errServing, errPeer, errClaim); err != nil {
		return err
	}
	var gossipPort atomic.Int32
	group, ctx := errgroup.WithContext(ctx)
	group.Go(endless(ctx, membership.Run))
	group.Go(endless(ctx, func(ctx context.Context) { shutOut.Follow(ctx, client) }))
	group.Go(func() error {
		return RunLiveness(ctx, LivenessConfig{
			NodeName: o.Name, Known: known, Identity: membership.Client(), Life: life,
			Gossip: o.gossip(ip), GossipKeys: own.GossipKeys, revoked: shutOut.Judge, authorities: membership, Logger: o.Logger,
			Gossiping: func(here string, servers []string) {
				gossipPort.Store(reserved.PortOf(here))
				traffic.Gossip(slices.Concat(servers, []string{here}))
			},
		})
	})
	group.Go(func() error {
		return RunNode(ctx, NodeConfig{
			Name: o.Name, DataDir: o.DataDir, ImagesDir: o.ImagesDir, RuntimeEndpoint: o.RuntimeEndpoint,
			started: started, IP: ip, IP6: ip6, Listener: listener, ServerTLS: serverTLS, PeerTLS: peerTLS, revoked: shutOut.Judge, Client: client,
			claim: claim, Session: true, Settings: o.Settings,
			EndPodsOnStop: o.EndPodsOnStop, PodNetwork: o.PodNetwork, GossipPort: gossipPort.Load,
			Cluster: o.Cluster, Ingress: o.Ingress, AccessLog: o.AccessLog, Gateways: gateways, traffic: traffic, Logger: o.Logger,
		})
	})
	return group.Wait()
}

// endless is for a group what ends with ctx alone, and without an error.
func endless(ctx context.Context, run func(context.Context)) func() error {
	return func() error {
		run(ctx)
		return nil
	}
}

// claimOf says that a Node belongs to the key of its machine, which is the same in each of its certificates.
func claimOf(own *trust.Identity) (map[string]string, error) {
	certificate, err := trust.ParseCertificate(own.CertPEM)
	if err != nil {
		return nil, err
	}
	return map[string]string{trust.NodeKeyAnnotation: trust.KeyHash(certificate.RawSubjectPublicKeyInfo)}, nil
}

// managed is tellManager until ctx ends, when the service manager is told of that too.
func (o *Options) managed(ctx context.Context) (started func(progress func(context.Context) error)) {
	service := sdnotify.Open(o.Logger)
	service.Watch(ctx) // it ends with ctx
	context.AfterFunc(ctx, service.Stopping)
	return o.tellManager(service)
}

// tellManager tells the service manager at once that the agent runs, for what it then waits for is other machines, and later, once what it
// returns is called, that pods can run.
func (o *Options) tellManager(service *sdnotify.Service) (started func(progress func(context.Context) error)) {
	service.Does("node "+o.Name+" waits for a server of its cluster", nil)
	return func(progress func(context.Context) error) { service.Does("node "+o.Name+" runs pods", progress) }
}

func (o *Options) gossip(ip net.IP) *gossip.Membership {
	if o.GossipAddress == "" {
		return nil
	}
	return &gossip.Membership{BindAddress: o.GossipAddress, AdvertiseIP: ip.String()}
}

// nodeIP is the address given, or the one from which the first server is reached that has an address. The
// second is that of IPv6, if it was given.
func (o *Options) nodeIP(servers []string) (first, second net.IP, err error) {
	if o.NodeIP != "" {
		return parseNodeIP(o.NodeIP)
	}
	for _, server := range servers { // the name of one that was removed may mean nothing any more
		var conn net.Conn
		if conn, err = net.Dial("udp", server); err == nil { // sends nothing: only asks for the route
			defer conn.Close()
			return conn.LocalAddr().(*net.UDPAddr).IP, nil, nil
		}
		err = fmt.Errorf("which address of this machine reaches %s? give --node-ip: %w", server, err)
	}
	return nil, nil, err
}

// parseNodeIP reads the flag: one address, or one of each family.
func parseNodeIP(text string) (first, second net.IP, err error) {
	if text == "" {
		return nil, nil, nil
	}
	one, other, both := strings.Cut(text, ",")
	first, second = net.ParseIP(one), net.ParseIP(other)
	if first == nil || both && (first.To4() == nil || second == nil || second.To4() != nil) {
		return nil, nil, fmt.Errorf("%w: %q", errBadNodeIP, text)
	}
	return first, second, nil
}

// failoverClients talk to whichever of the servers of the node's life of the cluster answers and is not revoked: the second one is for
// custom resources.
func failoverClients(
	identity *trust.Live, known *knownservers.List, life *clusterlife.Pin, judge *revocation.Judge,
) (kubernetes.Interface, dynamic.Interface, error) {
	transport, err := failover.New(identity, known.Now, judge)
	if err != nil {
		return nil, nil, err
	}
	config := &rest.Config{
		Host: "https://" + known.Now()[0], QPS: -1, UserAgent: "setpoint-agent/" + process.Version,
		Transport: transport.Through(life.Through),
		ContentConfig: rest.ContentConfig{
			AcceptContentTypes: "application/vnd.kubernetes.protobuf,application/json",
			ContentType:        "application/vnd.kubernetes.protobuf",
		},
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, nil, err
	}
	custom, err := dynamic.NewForConfig(config) // it asks for JSON, whatever the config says
	return client, custom, err
}
