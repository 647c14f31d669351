package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/demo"
)

// newDemo is what the built-in demo image runs.
func newDemo() *cobra.Command {
	return &cobra.Command{
		Use:                "demo",
		Short:              "The server inside the built-in demo image",
		Hidden:             true,
		DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, args []string) error {
			os.Exit(demo.Main(args))
			return nil
		},
	}
}
