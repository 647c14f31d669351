package main

import (
	"fmt"
	"io"
	"runtime"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/setpoint-io/setpoint"
)

// versions are what people are asked for when something is wrong.
type versions struct {
	Setpoint   string `json:"setpoint"`
	Kubernetes string `json:"kubernetes"`
	Go         string `json:"go"`
	Platform   string `json:"platform"`
}

func ownVersions() versions {
	return versions{
		Setpoint: setpoint.Version, Kubernetes: setpoint.KubernetesVersion,
		Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
}

func newVersion() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use: "version", Short: "Show the versions of setpoint, of the Kubernetes API that it serves, and of Go",
		Long: "Show the versions of setpoint, of the Kubernetes API that it serves, and of Go.\n" +
			"'setpoint kubectl version' asks a running cluster.",
	}
	cmd.Flags().StringVarP(&output, "output", "o", "table", outputUsage)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		v := ownVersions()
		return printAs(cmd.OutOrStdout(), output, v, func(w io.Writer) error {
			t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
			fmt.Fprintf(t, "Setpoint\t%s\nKubernetes\t%s\nGo\t%s\nPlatform\t%s\n", v.Setpoint, v.Kubernetes, v.Go, v.Platform)
			return t.Flush()
		})
	}
	return withSources(cmd)
}
