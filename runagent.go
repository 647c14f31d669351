package setpoint

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/agent"
	"github.com/setpoint-io/setpoint/agent/cri"
	"github.com/setpoint-io/setpoint/agent/cri/embedded"
	"github.com/setpoint-io/setpoint/agent/cri/remote"
	"github.com/setpoint-io/setpoint/agent/machine"
	"github.com/setpoint-io/setpoint/agent/network"
	"github.com/setpoint-io/setpoint/apiserver/auth/join"
	"github.com/setpoint-io/setpoint/apiserver/auth/pki"
	"github.com/setpoint-io/setpoint/controllers"
)

// AgentOptions are the flags of `setpoint agent`.
type AgentOptions struct {
	Name, TokenFile, DataDir, ImagesDir string
	Servers                             []string
	RuntimeEndpoint, NodeIP             string
	Port                                int
	GossipAddress                       string
	Logger                              *slog.Logger
}

var (
	errNoServers   = errors.New("--servers must name at least one server")
	errNoTokenFile = errors.New("--token-file is needed to join for the first time")
	errBadNodeIP   = errors.New("--node-ip is not an IP address")
)

// Validate says what is wrong with the flags.
func (o *AgentOptions) Validate() error {
	switch {
	case len(o.Servers) == 0:
		return errNoServers
	case o.DataDir == "":
		return errNoDataDir
	case o.NodeIP != "" && net.ParseIP(o.NodeIP) == nil:
		return fmt.Errorf("%w: %q", errBadNodeIP, o.NodeIP)
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
	return pki.ValidateNodeName(o.Name)
}

// RunAgent joins the cluster if need be and runs this machine's pods until ctx
// ends. Containers outlive it.
func RunAgent(ctx context.Context, o AgentOptions) error {
	if err := machine.Prepare(); err != nil {
		return err
	}
	unlock, err := lockDataDir(o.DataDir, "agent")
	if err != nil {
		return err
	}
	defer unlock()
	ip, err := o.nodeIP()
	if err != nil {
		return err
	}
	node, err := o.join(ctx, ip)
	if err != nil {
		return err
	}
	client, err := failoverClient(node.Identity, o.Servers)
	if err != nil {
		return err
	}
	listener, err := listen(net.JoinHostPort("", strconv.Itoa(o.Port)))
	if err != nil {
		return err
	}
	tlsConfig, err := node.Identity.ClientConfig()
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		return runAgentLiveness(ctx, AgentLivenessConfig{
			NodeName: o.Name, Servers: o.Servers, TLS: tlsConfig, Gossip: o.gossip(ip), GossipKey: node.GossipKey, Logger: o.Logger,
		})
	})
	group.Go(func() error {
		return runNode(ctx, nodeConfig{
			name: o.Name, dataDir: o.DataDir, imagesDir: o.ImagesDir, runtimeEndpoint: o.RuntimeEndpoint,
			ip: ip, listener: listener, identity: node.Identity, client: client, session: true, logger: o.Logger,
		})
	})
	return group.Wait()
}

func (o *AgentOptions) gossip(ip net.IP) *GossipConfig {
	if o.GossipAddress == "" {
		return nil
	}
	g := &GossipConfig{BindAddress: o.GossipAddress}
	_, port, err := net.SplitHostPort(o.GossipAddress)
	if err != nil {
		return g
	}
	g.AdvertiseAddress = net.JoinHostPort(ip.String(), port)
	for _, server := range o.Servers {
		host, _, _ := strings.Cut(server, ":")
		g.Seeds = append(g.Seeds, net.JoinHostPort(host, port))
	}
	return g
}

// nodeIP is the address given, or the one from which the first server is reached.
func (o *AgentOptions) nodeIP() (net.IP, error) {
	if o.NodeIP != "" {
		return net.ParseIP(o.NodeIP), nil
	}
	conn, err := net.Dial("udp", o.Servers[0]) // sends nothing: only asks for the route
	if err != nil {
		return nil, fmt.Errorf("which address of this machine reaches %s? give --node-ip: %w", o.Servers[0], err)
	}
	defer conn.Close()
	return conn.LocalAddr().(*net.UDPAddr).IP, nil
}

func (o *AgentOptions) join(ctx context.Context, ip net.IP) (*pki.Node, error) {
	token := ""
	if o.TokenFile != "" {
		err := awaitFile(ctx, o.Logger, o.TokenFile, func() error {
			text, err := os.ReadFile(o.TokenFile)
			token = string(text)
			return err
		})
		if err != nil {
			return nil, err
		}
	} else if _, err := pki.LoadNode(o.DataDir); err != nil {
		return nil, errNoTokenFile
	}
	return join.LoadOrJoin(ctx, o.DataDir, join.Config{
		Servers: o.Servers, Token: token, NodeName: o.Name, Addresses: []string{ip.String()}, Logger: o.Logger,
	})
}

// failoverClient talks to whichever of the servers answers.
func failoverClient(identity *pki.Identity, servers []string) (kubernetes.Interface, error) {
	config, err := identity.ClientConfig()
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(&rest.Config{
		Host: "https://" + servers[0], QPS: -1, UserAgent: "setpoint-agent/" + Version,
		Transport: newFailover(config, servers),
		ContentConfig: rest.ContentConfig{
			AcceptContentTypes: "application/vnd.kubernetes.protobuf,application/json",
			ContentType:        "application/vnd.kubernetes.protobuf",
		},
	})
}

// nodeConfig is one node in this process.
type nodeConfig struct {
	name, dataDir, imagesDir, runtimeEndpoint string
	ip                                        net.IP
	listener                                  net.Listener
	identity                                  *pki.Identity
	client                                    kubernetes.Interface
	session                                   bool // liveness is proven by a session, so Leases are renewed seldom
	logger                                    *slog.Logger
}

// runNode opens the runtime and runs the agent on it.
func runNode(ctx context.Context, c nodeConfig) error {
	runtime, err := c.runtime(ctx)
	if err != nil {
		return err
	}
	defer runtime.Close(context.WithoutCancel(ctx))
	serverTLS, err := c.identity.AgentConfig()
	if err != nil {
		return err
	}
	routes := network.NewRoutes(network.RoutesConfig{Logger: c.logger})
	var translation network.Translation
	config := agent.Config{
		NodeName: c.name, Client: c.client, Runtime: runtime, DataDir: c.dataDir, NodeIP: c.ip,
		Listener: c.listener, ServerTLS: serverTLS, Logger: c.logger,
		SetPeers: func(peers []agent.Peer) { setRoutes(routes, peers, c.logger) }, SetServices: translation.SetServices,
	}
	if c.session {
		config.LeaseInterval = sessionLeaseInterval
	}
	return agent.Run(ctx, config)
}

func (c nodeConfig) runtime(ctx context.Context) (cri.Runtime, error) {
	if c.runtimeEndpoint != "" {
		return remote.New(ctx, remote.Config{Endpoint: c.runtimeEndpoint})
	}
	images := c.imagesDir
	if images == "" {
		images = filepath.Join(c.dataDir, "images")
	}
	if err := os.MkdirAll(images, 0o755); err != nil {
		return nil, err
	}
	return embedded.New(embedded.Config{
		DataDir: filepath.Join(c.dataDir, "runtime"), ImagesDir: images, NodeName: c.name,
		ClusterCIDR: netip.MustParsePrefix(controllers.DefaultPodCIDR), Logger: c.logger,
	})
}
