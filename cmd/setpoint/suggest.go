package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	kubectlcmd "k8s.io/kubectl/pkg/cmd"

	"github.com/setpoint-io/setpoint/cmd/setpoint/spelling"
	"github.com/setpoint-io/setpoint/cmd/setpoint/upstreamflags"
)

// suggestCommand is " (did you mean ...?)" for a name that no command below cmd has, or "".
func suggestCommand(cmd *cobra.Command, typed string) string {
	if paths := elsewhere(cmd, typed); len(paths) > 0 {
		return didYouMean(paths)
	}
	var names []string
	for _, child := range cmd.Commands() {
		if child.IsAvailableCommand() {
			names = append(names, child.Name())
			if slices.Contains(child.SuggestFor, typed) {
				return didYouMean([]string{child.Name()})
			}
		}
	}
	return didYouMean(spelling.Near(typed, names))
}

// elsewhere are the commands of that very name which stand below other commands, kubectl's too.
func elsewhere(cmd *cobra.Command, typed string) (paths []string) {
	for _, group := range cmd.Root().Commands() {
		for _, child := range group.Commands() {
			if group != cmd && child.Name() == typed && child.IsAvailableCommand() {
				paths = append(paths, quoted(child.CommandPath()))
			}
		}
	}
	if cmd.HasParent() {
		return paths
	}
	streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: io.Discard, ErrOut: io.Discard}
	for _, child := range kubectlcmd.NewKubectlCommand(kubectlcmd.KubectlOptions{IOStreams: streams}).Commands() {
		if child.Name() == typed && child.IsAvailableCommand() {
			paths = append(paths, quoted(cmd.Name()+" kubectl "+typed))
		}
	}
	return paths
}

func quoted(command string) string { return "'" + command + "'" }

// suggestFlag adds the flags that may be meant to a mistake about flags.
func suggestFlag(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return err
	}
	if why, known := upstreamflags.Why(unknown.GetSpecifiedName()); known && cmd.Name() == "server" {
		return fmt.Errorf("%w: %s", err, why)
	}
	found := spelling.Near(unknown.GetSpecifiedName(), flagNames(cmd.Flags()))
	for i := range found {
		found[i] = "--" + found[i]
	}
	return fmt.Errorf("%w%s: run '%s --help'", err, didYouMean(found), cmd.CommandPath())
}

func flagNames(flags *pflag.FlagSet) (names []string) {
	flags.VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	return names
}

func didYouMean(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return " (did you mean " + strings.Join(names, " or ") + "?)"
}
