package main

import (
	"io"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/cmd/setpoint/past"
)

func pastShell() *past.Shell {
	return &past.Shell{
		KubeconfigUsage: kubeconfigUsage, OutputUsage: outputUsage, Finish: withSources, AskServers: askServers,
		ContextNamespace: contextNamespace, CompleteObject: completeObject, Print: printAs, CheckOutput: checkOutput,
		Mistake: func(err error) error { return usageError{err} }, Escaped: func(w io.Writer) io.Writer { return escaped{w} }, Colors: wantsColor,
	}
}

// newAt embeds kubectl over a past that can only be read.
func newAt() *cobra.Command {
	run := func(args []string, change func(*rest.Config)) error { return runKubectl(args, change) }
	return past.At(run, completeKubectl, func(err error) error { return usageError{err} }, giveUp)
}
