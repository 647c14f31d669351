package main

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/setpoint-io/setpoint/cmd/setpoint/rotate"
)

func newRotate() *cobra.Command {
	shell := &rotate.Shell{
		KubeconfigUsage: kubeconfigUsage, OutputUsage: outputUsage, Finish: withSources, AskServers: askServers,
		Print: printAs, CheckOutput: checkOutput,
		Mistake: func(err error) error { return usageError{err} }, Escaped: func(w io.Writer) io.Writer { return escaped{w} },
	}
	return shell.Command()
}
