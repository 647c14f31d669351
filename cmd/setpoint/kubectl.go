package main

import (
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"

	"github.com/setpoint-io/setpoint"
)

// newKubectl embeds kubectl. All flags are its own.
func newKubectl() *cobra.Command {
	return &cobra.Command{
		Use:                "kubectl [command]",
		Short:              "kubectl, built in; finds the cluster of this machine by itself",
		DisableFlagParsing: true,
		ValidArgsFunction:  completeKubectl,
		RunE: func(*cobra.Command, []string) error {
			signal.Reset(os.Interrupt, syscall.SIGTERM) // kubectl ends by itself
			useOwnKubeconfig()
			os.Args = append([]string{"kubectl"}, os.Args[2:]...)
			if code := cli.Run(cmd.NewDefaultKubectlCommand()); code != 0 {
				os.Exit(code) // kubectl has said why
			}
			return nil
		},
	}
}

// useOwnKubeconfig points kubectl at this machine's cluster unless the user has
// chosen one.
func useOwnKubeconfig() {
	if os.Getenv("KUBECONFIG") != "" {
		return
	}
	if path := filepath.Join(defaultDataDir(), setpoint.AdminKubeconfig); exists(path) {
		_ = os.Setenv("KUBECONFIG", path)
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
