package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"

	"github.com/setpoint-io/setpoint/cmd/setpoint/nodestatus"
)

func newNode() *cobra.Command {
	return group(&cobra.Command{Use: "node", SuggestFor: []string{"nodes", "top"}, Short: "Look at nodes"}, newNodeStatus())
}

func newNodeStatus() *cobra.Command {
	var kubeconfig, output string
	cmd := &cobra.Command{
		Use: "status [NODE]", Short: "Show what runs on nodes, what it costs, what is under pressure, and what waits for an image",
		Long: "Show what runs on nodes, what it costs, what is under pressure, and what waits for which image, and since when. Of one node\n" +
			"each pod is shown, the one with the most memory first, and how its pods reach those of every other node, and why. Nodes are asked themselves, through a server, for what they use; one\n" +
			"that does not answer is shown without.",
	}
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", kubeconfigUsage)
	cmd.Flags().StringVarP(&output, "output", "o", "table", outputUsage)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := checkOutput(output); err != nil {
			return err
		}
		var nodes []nodestatus.Report
		err := askAPI(cmd.Context(), kubeconfig, func(ctx context.Context, client kubernetes.Interface) (err error) {
			nodes, err = nodestatus.Fetch(ctx, client, args)
			return err
		})
		if err != nil {
			return err
		}
		return printAs(cmd.OutOrStdout(), output, nodes, func(w io.Writer) error {
			return nodestatus.Print(escaped{w}, nodes, len(args) == 1, time.Now())
		})
	}
	cmd = withSources(cmd)
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) > 1 {
			return usageError{fmt.Errorf("want one node, or none for all: run '%s --help'", cmd.CommandPath())}
		}
		return nil
	}
	cmd.ValidArgsFunction = func(_ *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return completeKubectl(cmd, []string{"get", "node"}, toComplete)
	}
	return cmd
}
