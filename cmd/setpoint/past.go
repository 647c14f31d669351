package main

import (
	"io"

	"github.com/setpoint-io/setpoint/cmd/setpoint/past"
)

func pastShell() *past.Shell {
	return &past.Shell{
		KubeconfigUsage: kubeconfigUsage, OutputUsage: outputUsage, Finish: withSources, AskServers: askServers,
		ContextNamespace: contextNamespace, CompleteObject: completeObject, Print: printAs, CheckOutput: checkOutput,
		Mistake: func(err error) error { return usageError{err} }, Escaped: func(w io.Writer) io.Writer { return escaped{w} }, Colors: wantsColor,
	}
}
