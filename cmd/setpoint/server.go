package main

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"

	"github.com/setpoint-io/setpoint"
	"github.com/setpoint-io/setpoint/agent"
	"github.com/setpoint-io/setpoint/agent/host"
	"github.com/setpoint-io/setpoint/agent/net/network"
	"github.com/setpoint-io/setpoint/server"
)

// certificateLife is upstream's.
const certificateLife = 365 * 24 * time.Hour

func newServer() *cobra.Command {
	options := server.Options{RuntimeConfig: map[string]string{}}
	cmd := &cobra.Command{
		Use:   "server",
		Short: "Run one replica of the control plane",
		Example: "  setpoint server\n  setpoint server --name server-1 --initial-servers server-1=a:6443,server-2=b:6443,server-3=c:6443 --trust-dir /etc/setpoint\n" +
			"  setpoint server --name server-2 --join a:6443 --token-file server.token --advertise-address b:6443",
	}
	cmd.Flags().StringVar(&options.Name, "name", "server-1", "name of this replica: one of --initial-servers, or a new one that joins them")
	cmd.Flags().StringVar(&options.DataDir, "data-dir", setpoint.DefaultDataDir, "where to keep the replica's state")
	cmd.Flags().
		StringVar(&options.AdvertiseAddress, "advertise-address", "", "without --initial-servers: host:port of this replica (default 127.0.0.1:6443); with it: where to listen, if not at its entry, and where the others reach a replica that joins")
	cmd.Flags().StringVar(&options.InitialServers, "initial-servers", "", "all replicas: name=host:port,...; empty: this one alone")
	cmd.Flags().StringSliceVar(&options.Join, "join", nil,
		"servers of a running cluster, host:port,...: this one gets the trust folder from them, with the token for servers in --token-file, and becomes a member")
	cmd.Flags().StringVar(&options.TrustDir, "trust-dir", "", "what 'setpoint cluster init' wrote (default <data-dir>)")
	cmd.Flags().
		StringVar(&options.TokenFile, "token-file", "", "with --join, a token of 'setpoint token create --for server', needed once; the server does not start if it is of another cluster than the trust folder")
	cmd.Flags().
		StringVar(&options.GossipAddress, "gossip-address", ":7946", "address of gossip, tcp and udp; another port if it is taken; empty: no gossip")
	networkFlags(cmd.Flags(), &options.PodCIDR, &options.NodeMaskSize, &options.NodeMaskSize6, &options.ServiceCIDR)
	balancerFlag(cmd.Flags(), &options.LoadBalancerAddresses)
	externalIPsFlag(cmd.Flags(), &options.ServiceExternalIPs)
	dnsFlag(cmd.Flags(), &options.DNS)
	gatewayFlag(cmd.Flags(), &options.GatewayAPI)
	schedulerFlag(cmd.Flags(), &options.SchedulerConfig)
	localVolumesFlag(cmd.Flags(), &options.LocalVolumes)
	cmd.Flags().DurationVar(&options.SigningDuration, "cluster-signing-duration", certificateLife,
		"how long a certificate is valid that a CertificateSigningRequest asks for, at most; the leading server's counts")
	accessFlags(cmd.Flags(), &options.Authentication, &options.Audit)
	authorizationFlag(cmd.Flags(), &options.AuthorizationFile)
	admissionFlags(cmd.Flags(), &options)
	encryptionFlags(cmd.Flags(), &options.Encryption)
	options.Backups.Flags(cmd.Flags())
	options.History.Flags(cmd.Flags())
	cmd.Flags().Uint64Var(&options.HoldFeatureLevel, "hold-feature-level", 0,
		"do not let the cluster rise beyond this feature level, or beyond the one that it has if that is higher, so that all servers can go back to an older release; 0: it rises to what all servers can")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		logger, err := newLogger(cmd)
		if err != nil {
			return err
		}
		options.Logger, options.Out, options.Flags = logger, cmd.OutOrStdout(), cmd.Flags()
		parsed, err := options.Parse()
		if err != nil {
			return usageError{err}
		}
		return parsed.Run(cmd.Context())
	}
	return withSources(cmd)
}

func newAgent() *cobra.Command {
	var options host.Options
	var node nodeFlags
	var podNetwork string
	var accessLog bool
	cmd := &cobra.Command{
		Use:     "agent",
		Short:   "Run the pods of this machine",
		Example: "  setpoint agent --servers a:6443,b:6443,c:6443 --token-file node.token",
	}
	cmd.Flags().StringVar(&options.Name, "name", "", "name of the node (default: the host's name)")
	cmd.Flags().StringSliceVar(&options.Servers, "servers", nil, "the control plane: host:port,...")
	cmd.Flags().
		StringVar(&options.TokenFile, "token-file", "", "join token ('setpoint token create'), needed while the data directory holds no valid certificate")
	cmd.Flags().StringVar(&options.DataDir, "data-dir", setpoint.DefaultDataDir, "where to keep images, pods and the node's certificate")
	cmd.Flags().StringVar(&options.ImagesDir, "images-dir", "", "folder of image archives to load at start (default <data-dir>/images)")
	cmd.Flags().
		StringVar(&options.RuntimeEndpoint, "container-runtime-endpoint", "", "socket of containerd or CRI-O; empty: the embedded runtime")
	cmd.Flags().StringVar(&options.NodeIP, "node-ip", "", "address of this node, or one of IPv4 and one of IPv6 with a comma between them (default: the one that reaches the first server, and in a cluster with IPv6 one of the same link)")
	cmd.Flags().IntVar(&options.Port, "port", 0, fmt.Sprintf("port on which servers reach this agent (default %d)", host.DefaultPort))
	cmd.Flags().StringVar(&podNetwork, "pod-network", "auto",
		"how pods of other nodes are reached: auto (a route to nodes on a link of this one, VXLAN to others), routes, vxlan or wireguard (encrypted to every node)")
	ingressFlags(cmd.Flags(), &options.Ingress, &accessLog)
	node.add(cmd.Flags())
	cmd.Flags().BoolVar(&options.EndPodsOnStop, "end-pods-on-stop", false,
		"end the pods when this agent is stopped, within the KubeletConfiguration's times for a shutdown; otherwise they run on")
	cmd.Flags().
		StringVar(&options.GossipAddress, "gossip-address", ":7947", "address of gossip, tcp and udp; another port if it is taken; empty: no gossip")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		logger, err := newLogger(cmd)
		if err != nil {
			return err
		}
		options.Logger, options.Cluster, options.AccessLog = logger, ofCluster, writerIf(accessLog, cmd.OutOrStdout())
		if options.Settings, err = node.read(cmd.Flags()); err != nil {
			return usageError{err}
		}
		if options.PodNetwork, err = host.ParsePodNetwork(podNetwork); err != nil {
			return usageError{err}
		}
		options.Port = cmp.Or(options.Port, options.Settings.Port, host.DefaultPort)
		options.RuntimeEndpoint = cmp.Or(options.RuntimeEndpoint, options.Settings.RuntimeEndpoint)
		options.Settings.PodLogsDir = cmp.Or(options.Settings.PodLogsDir, podLogsDir(options.DataDir))
		if err := options.Validate(); err != nil {
			return usageError{fmt.Errorf("%w: run 'setpoint agent --help'", err)}
		}
		if options.DataDir, err = filepath.Abs(options.DataDir); err != nil { // mounts of pods know no working folder
			return err
		}
		return host.Run(cmd.Context(), options)
	}
	return withSources(cmd)
}

// kubeletDir is where programs for nodes look for a kubelet's sockets and volumes.
const kubeletDir = "/var/lib/kubelet"

// podLogsDir is where the machine's own node has the logs of pods; "": one with a data directory of its own has them there.
func podLogsDir(dataDir string) string {
	switch filepath.Clean(dataDir) {
	case setpoint.DefaultDataDir, kubeletDir:
		return host.MachinePodLogs
	}
	return ""
}

// ofCluster is what nodes know of their cluster.
var ofCluster = host.Cluster{PodNetwork: podNetworkInForce, CompletePod: server.CompletePod}

func podNetworkInForce(ctx context.Context, client kubernetes.Interface) (agent.PodNetwork, error) {
	n, err := server.PodNetworkInForce(ctx, client)
	return agent.PodNetwork{
		Ranges:       network.Ranges{Pods: n.CIDR, Services: n.Services, Pods6: n.CIDR6, Services6: n.Services6},
		NodeMaskSize: n.NodeMaskSize, NodeMaskSize6: n.NodeMaskSize6,
	}, err
}
