package main

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/setpoint-io/setpoint/cmd/setpoint/whatif"
)

func newWhatIf() *cobra.Command {
	shell := &whatif.Shell{
		KubeconfigUsage: kubeconfigUsage, OutputUsage: outputUsage, Finish: withSources, AskServers: askServers, Namespace: contextNamespace,
		Print: printAs, CheckOutput: checkOutput,
		Mistake: func(err error) error { return usageError{err} }, Escaped: func(w io.Writer) io.Writer { return escaped{w} },
	}
	return shell.Command()
}
