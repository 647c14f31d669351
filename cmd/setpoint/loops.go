package main

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/setpoint-io/setpoint/cmd/setpoint/loops"
)

func newLoops() *cobra.Command {
	shell := &loops.Shell{
		KubeconfigUsage: kubeconfigUsage, OutputUsage: outputUsage, Finish: withSources, AskServers: askServers, Print: printAs,
		CheckOutput: checkOutput, Escaped: func(w io.Writer) io.Writer { return escaped{w} },
		Mistake: func(err error) error { return usageError{err} },
	}
	return shell.Command()
}
