package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/setpoint-io/setpoint"
	"github.com/setpoint-io/setpoint/cmd/setpoint/clusterstatus"
	"github.com/setpoint-io/setpoint/cmd/setpoint/upgrade"
	"github.com/setpoint-io/setpoint/server"
)

func newUpgrade() *cobra.Command {
	return group(&cobra.Command{Use: "upgrade", Short: "How a cluster comes to another release"}, newUpgradePlan())
}

func newUpgradePlan() *cobra.Command {
	var path, output string
	cmd := &cobra.Command{
		Use: "plan", Short: "Say how the cluster comes to the release of this program, step by step; exit code 1 if something is to be mended first",
		Long: "Say how the cluster comes to the release of this program, step by step. Run the program of the new release; nothing is changed.\n" +
			"The exit code is 1 if something is to be mended first.",
	}
	cmd.Flags().StringVar(&path, "kubeconfig", "", kubeconfigUsage)
	cmd.Flags().StringVarP(&output, "output", "o", "table", outputUsage)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		plan, err := planUpgrade(cmd.Context(), path)
		if err != nil {
			return err
		}
		if err := printAs(cmd.OutOrStdout(), output, plan, func(w io.Writer) error { return plan.Print(escaped{w}) }); err != nil {
			return err
		}
		return plan.Err()
	}
	return withSources(cmd)
}

// planUpgrade asks the servers and the API.
func planUpgrade(ctx context.Context, path string) (*upgrade.Plan, error) {
	configs, err := contexts(path)
	if err != nil {
		return nil, err
	}
	report := clusterstatus.Fetch(ctx, configs)
	if report.Best == nil {
		return nil, errNobodyAnswers
	}
	client, err := kubernetes.NewForConfig(report.Best)
	if err != nil {
		return nil, err
	}
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	to := upgrade.Release{Setpoint: setpoint.Version, Kubernetes: setpoint.KubernetesVersion, Level: server.FeatureLevel}
	plan := upgrade.Of(to, report, nodes.Items)
	return &plan, nil
}
