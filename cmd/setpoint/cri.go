package main

import (
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/setpoint-io/setpoint"
	"github.com/setpoint-io/setpoint/agent/host"
)

func newCRI() *cobra.Command {
	var options host.CRIOptions
	cmd := &cobra.Command{
		Use: "cri", SuggestFor: []string{"runtime", "containerd"},
		Short: "Serve the embedded container runtime on a socket, to crictl, critest or a kubelet of others",
		Long: "Serve the embedded container runtime on a socket, as the Container Runtime Interface v1: to crictl, critest, or a\n" +
			"kubelet of others. 'setpoint agent' needs none of this: it has the runtime inside.\n\n" +
			"Only root can connect. The folder of the socket is made with mode 0700; one that is open to others is refused. A socket\n" +
			"that nobody serves is replaced, one that somebody serves is refused. Exec, attach and port-forward are streamed from a\n" +
			"port of loopback, by URLs that work once and for a minute. Containers go on running when this command ends, and the\n" +
			"next one with the same data directory finds them; 'setpoint reset' ends them.",
		Example: "  setpoint cri --pod-cidr 10.42.0.0/24\n  crictl --runtime-endpoint " + host.DefaultCRISocket + " pods\n" +
			"  kubelet --container-runtime-endpoint " + host.DefaultCRISocket + " ...",
	}
	cmd.Flags().StringVar(&options.Listen, "listen", host.DefaultCRISocket, "the socket: unix:// and an absolute path")
	cmd.Flags().StringVar(&options.DataDir, "data-dir", setpoint.DefaultDataDir, "where to keep images and containers; an agent with this directory excludes it")
	cmd.Flags().StringVar(&options.ImagesDir, "images-dir", "", "folder of image archives to load at start; empty: none")
	registriesFlag(cmd.Flags(), &options.Registries)
	cmd.Flags().StringVar(&options.Name, "name", "", "name in the cgroups of pods for which the caller names none (default: the host's name)")
	cmd.Flags().StringVar(&options.PodCIDR, "pod-cidr", "",
		"addresses of pods; empty: those that a kubelet names, until when pods can have the host's network only")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		logger, err := newLogger(cmd)
		if err != nil {
			return err
		}
		options.Logger, options.Out = logger, cmd.OutOrStdout()
		if err := options.Validate(); err != nil {
			return usageError{err}
		}
		if options.DataDir, err = filepath.Abs(options.DataDir); err != nil { // mounts of pods know no working folder
			return err
		}
		return host.RunCRI(cmd.Context(), options)
	}
	return withSources(cmd)
}
