package main

import (
	"cmp"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/setpoint-io/setpoint"
	"github.com/setpoint-io/setpoint/agent/host"
	"github.com/setpoint-io/setpoint/cmd/setpoint/lessons"
	"github.com/setpoint-io/setpoint/internal/zpages"
)

func newDev() *cobra.Command {
	config := devConfig{Config: setpoint.Config{Replicas: 1, DivideProcessor: true}}
	cmd := &cobra.Command{
		Use: "dev", SuggestFor: []string{"start", "up", "run"},
		Short: "Run a cluster in this process: control plane and a node",
		Long: "Run a cluster in this process: a control plane and one node whose pods are real containers.\n" +
			"Without root, or with --simulated-nodes, nodes are simulated: their pods run nothing.",
		Example: "  setpoint dev\n  setpoint dev --servers 3 --simulated-nodes 10 --data-dir /tmp/cluster",
	}
	cmd.Flags().StringVar(&config.DataDir, "data-dir", defaultDataDir(), "where to keep the cluster")
	cmd.Flags().IntVar(&config.Replicas, "servers", 1, "number of replicas of the control plane, 1 to 5")
	cmd.Flags().IntVar(&config.SimulatedNodes, "simulated-nodes", 0, "number of nodes whose pods go Running and Ready without containers")
	cmd.Flags().
		IntVar(&config.Port, "port", setpoint.DefaultPort, "port of the first replica; the others follow; 0: those of the last start, or free ones")
	cmd.Flags().StringVar(&config.imagesDir, "images-dir", "", "folder of image archives to load (default <data-dir>/images)")
	ingressFlags(cmd.Flags(), &config.ingress, &config.accessLog)
	kubeletConfigFlag(cmd.Flags(), &config.kubeletConfig)
	config.walls.add(cmd.Flags())
	registriesFlag(cmd.Flags(), &config.registries)
	networkFlags(cmd.Flags(), &config.PodCIDR, &config.NodeMaskSize, &config.NodeMaskSize6, &config.ServiceCIDR)
	balancerFlag(cmd.Flags(), &config.LoadBalancerAddresses)
	externalIPsFlag(cmd.Flags(), &config.ServiceExternalIPs)
	dnsFlag(cmd.Flags(), &config.DNS)
	gatewayFlag(cmd.Flags(), &config.GatewayAPI)
	schedulerFlag(cmd.Flags(), &config.SchedulerConfig)
	localVolumesFlag(cmd.Flags(), &config.LocalVolumes)
	accessFlags(cmd.Flags(), &config.Authentication, &config.Audit)
	authorizationFlag(cmd.Flags(), &config.AuthorizationFile)
	encryptionFlags(cmd.Flags(), &config.Encryption)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		logger, err := newLogger(cmd)
		if err != nil {
			return err
		}
		config.Logger, config.out = logger, cmd.OutOrStdout()
		if config.Port == 0 && !cmd.Flags().Changed("ingress-http-port") && !cmd.Flags().Changed("ingress-https-port") {
			config.ingress = host.IngressPorts{} // such clusters stand beside others
		}
		if err := config.validate(); err != nil {
			return usageError{err}
		}
		if config.DataDir, err = filepath.Abs(config.DataDir); err != nil { // mounts of pods know no working folder
			return err
		}
		if config.node, err = devSettings(config.kubeletConfig); err != nil {
			return usageError{err}
		}
		config.node.PodLogsDir = cmp.Or(config.node.PodLogsDir, podLogsDir(config.DataDir))
		config.node.Registries, config.node.Pages = config.registries, zpages.Of(kubeletName, cmd.Flags())
		if err := config.walls.set(&config.node); err != nil {
			return usageError{err}
		}
		if err := host.ValidateRuntime(config.node, ""); err != nil {
			return usageError{err}
		}
		return runDev(cmd.Context(), config)
	}
	cmd = withSources(cmd)
	lessons := &lessons.Shell{
		KubeconfigUsage: kubeconfigUsage, Finish: withSources, AskServers: askServers, Namespace: contextNamespace,
		Escaped: func(w io.Writer) io.Writer { return escaped{w} }, Mistake: func(err error) error { return usageError{err} },
	}
	cmd.AddCommand(lessons.Commands()...)
	return cmd
}

// devSettings are modest without a file.
func devSettings(file string) (host.Settings, error) {
	if file == "" {
		return host.SharedMachineSettings(), nil
	}
	s, err := host.ReadSettings(file)
	if err == nil && (s.Port != 0 || s.RuntimeEndpoint != "") {
		err = errDevSettings
	}
	return s, err
}

var errDevSettings = errors.New("--kubelet-config: port and containerRuntimeEndpoint: not supported by 'setpoint dev', which chooses both")

// defaultDataDir is the system's for root, the user's own for everybody else.
func defaultDataDir() string {
	if os.Geteuid() == 0 {
		return setpoint.DefaultDataDir
	}
	if home, err := os.UserHomeDir(); err == nil {
		return filepath.Join(home, ".local", "share", "setpoint")
	}
	return setpoint.DefaultDataDir
}
