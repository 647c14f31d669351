package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

// group is a command that does nothing but hold others: alone it tells what there is.
func group(cmd *cobra.Command, children ...*cobra.Command) *cobra.Command {
	cmd.Args = unknownCommand
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.AddCommand(children...)
	return cmd
}

// unknownCommand refuses what no command of a group took.
func unknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return usageError{fmt.Errorf("unknown command %q%s: run '%s --help'", args[0], suggestCommand(cmd, args[0]), cmd.CommandPath())}
}

// newHelp is cobra's help command, but what it does not know is a mistake.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [command]",
		Short: "Help about any command",
		RunE: func(cmd *cobra.Command, args []string) error {
			found, rest, err := cmd.Root().Find(args)
			if err == nil && found.HasSubCommands() {
				err = unknownCommand(found, rest)
			}
			if err != nil {
				return err
			}
			return found.Help()
		},
	}
}
