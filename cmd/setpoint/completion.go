package main

import (
	"bytes"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// flagValues are the flags with few values, and which these are.
var flagValues = map[string][]string{
	"for":         {"agent", "server"},
	"log-level":   {"debug", "info", "warn", "error"},
	"output":      {"table", "json", "yaml"},
	"pod-network": {"auto", "routes", "vxlan", "wireguard"},
}

// flagFolders are the flags that name a folder. Others are completed as files.
var flagFolders = []string{"data-dir", "images-dir", "trust-dir", "out"}

// completeFlags tells shells what may stand behind the flags of cmd, and that there are
// no arguments unless it says so itself.
func completeFlags(cmd *cobra.Command) {
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	for name, values := range flagValues {
		if cmd.Flags().Lookup(name) != nil {
			must(cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)))
		}
	}
	for _, name := range flagFolders {
		if cmd.Flags().Lookup(name) != nil {
			must(cmd.MarkFlagDirname(name))
		}
	}
	must(cmd.MarkFlagFilename("config", "yaml", "yml"))
}

// must is for flags that are there.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// completeKubectl asks the embedded kubectl, which knows the cluster's objects too.
func completeKubectl(_ *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	useOwnKubeconfig()
	os.Args = append(append([]string{"kubectl", cobra.ShellCompRequestCmd}, args...), toComplete)
	kubectl := embeddedKubectl()
	var answer bytes.Buffer
	kubectl.SetOut(&answer)
	kubectl.SetErr(io.Discard)
	if err := kubectl.Execute(); err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	lines := strings.Split(strings.TrimSpace(answer.String()), "\n")
	last := len(lines) - 1 // ":" and the directive
	directive, err := strconv.Atoi(strings.TrimPrefix(lines[last], ":"))
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return lines[:last], cobra.ShellCompDirective(directive)
}
