package main

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/setpoint-io/setpoint"
	"github.com/setpoint-io/setpoint/agent/host"
	"github.com/setpoint-io/setpoint/server"
)

func newServer() *cobra.Command {
	var options server.Options
	cmd := &cobra.Command{
		Use:     "server",
		Short:   "Run one replica of the control plane",
		Example: "  setpoint server\n  setpoint server --name server-1 --initial-servers server-1=a:6443,server-2=b:6443,server-3=c:6443 --trust-dir /etc/setpoint",
	}
	cmd.Flags().StringVar(&options.Name, "name", "server-1", "name of this replica: one of --initial-servers, or a new one that joins them")
	cmd.Flags().StringVar(&options.DataDir, "data-dir", setpoint.DefaultDataDir, "where to keep the replica's state")
	cmd.Flags().
		StringVar(&options.AdvertiseAddress, "advertise-address", "", "without --initial-servers: host:port of this replica (default 127.0.0.1:6443); with it: where to listen, if not at its entry, and where the others reach a replica that joins")
	cmd.Flags().StringVar(&options.InitialServers, "initial-servers", "", "all replicas: name=host:port,...; empty: this one alone")
	cmd.Flags().StringVar(&options.TrustDir, "trust-dir", "", "what 'setpoint cluster init' wrote (default <data-dir>)")
	cmd.Flags().
		StringVar(&options.TokenFile, "token-file", "", "a join token: the server does not start if it is of another cluster than the trust folder")
	cmd.Flags().
		StringVar(&options.GossipAddress, "gossip-address", ":7946", "address of gossip, tcp and udp; another port if it is taken; empty: no gossip")
	networkFlags(cmd.Flags(), &options.PodCIDR, &options.NodeMaskSize)
	schedulerFlag(cmd.Flags(), &options.SchedulerConfig)
	accessFlags(cmd.Flags(), &options.Authentication, &options.Audit)
	encryptionFlags(cmd.Flags(), &options.Encryption)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		logger, err := newLogger(cmd)
		if err != nil {
			return err
		}
		options.Logger, options.Out = logger, cmd.OutOrStdout()
		if err := options.Validate(); err != nil {
			return usageError{err}
		}
		return server.Run(cmd.Context(), options)
	}
	return withSources(cmd)
}

func newAgent() *cobra.Command {
	var options host.Options
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
	cmd.Flags().StringVar(&options.NodeIP, "node-ip", "", "address of this node (default: the one that reaches the first server)")
	cmd.Flags().IntVar(&options.Port, "port", host.DefaultPort, "port on which servers reach this agent")
	cmd.Flags().Int64Var(&options.MaxPods, "max-pods", host.DefaultMaxPods, "how many pods this node takes")
	imageFlags(cmd.Flags(), &options)
	cmd.Flags().
		StringVar(&options.GossipAddress, "gossip-address", ":7947", "address of gossip, tcp and udp; another port if it is taken; empty: no gossip")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		logger, err := newLogger(cmd)
		if err != nil {
			return err
		}
		options.Logger, options.Cluster = logger, ofCluster
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

// ofCluster is what nodes know of their cluster.
var ofCluster = host.Cluster{PodNetwork: server.PodNetworkInForce, Services: server.ServiceCIDR}

// imageFlags have the kubelet's names; the maximum age is in its configuration only.
func imageFlags(flags *pflag.FlagSet, o *host.Options) {
	d := host.DefaultImageCollection
	p := &o.ImageCollection
	flags.IntVar(&p.HighPercent, "image-gc-high-threshold", d.HighPercent,
		"percent of the disk in use from which images that nobody uses are removed; 100: never")
	flags.IntVar(&p.LowPercent, "image-gc-low-threshold", d.LowPercent, "percent of the disk in use at which that ends")
	flags.DurationVar(&p.MinAge, "minimum-image-ttl-duration", d.MinAge, "how long an image stays at least")
	flags.DurationVar(&p.MaxAge, "image-maximum-gc-age", d.MaxAge, "how long an image may be unused, whatever the disk says; 0: for ever")
}
