package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/setpoint-io/setpoint"
	"github.com/setpoint-io/setpoint/cmd/setpoint/standin"
)

// newEnvtestAssets prints the folder in which the binary has the names that envtest looks for.
func newEnvtestAssets() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "envtest-assets",
		Short: "Print a folder for envtest's KUBEBUILDER_ASSETS, in which this binary is etcd and kube-apiserver",
		Long: "Print a folder for envtest's KUBEBUILDER_ASSETS, in which this binary is etcd, kube-apiserver and kubectl.\n\n" +
			"Suites that use envtest, in any language, run unchanged, in memory. As envtest they have the API alone; with\n" +
			"SETPOINT_ENVTEST_LOOPS=all all control loops run, so that namespaces end and owners take their dependents along.",
		Example: "  export KUBEBUILDER_ASSETS=$(setpoint envtest-assets)\n  go test ./...",
		Args:    cobra.NoArgs,
	}
	cmd.Flags().StringVar(&dir, "dir", "", "the folder (default: one in this user's cache)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		executable, err := os.Executable()
		if err != nil {
			return err
		}
		if dir == "" {
			cache, err := os.UserCacheDir()
			if err != nil {
				return fmt.Errorf("name a folder with --dir: %w", err)
			}
			dir = filepath.Join(cache, "setpoint", "envtest-"+setpoint.Version)
		}
		if dir, err = filepath.Abs(dir); err != nil {
			return err
		}
		if err := standin.Link(dir, executable); err != nil {
			return err
		}
		_, err = fmt.Fprintln(cmd.OutOrStdout(), dir)
		return err
	}
	return cmd
}

// runAs is the program under whose name this binary was called, if that is none of its own.
func runAs(ctx context.Context, name string) int {
	if err := standin.Run(ctx, name, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintf(os.Stderr, "%s (setpoint): %v\n", name, err)
		return exitFailed
	}
	return 0
}
