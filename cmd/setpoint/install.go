package main

import (
	"github.com/spf13/cobra"

	"github.com/setpoint-io/setpoint"
	"github.com/setpoint-io/setpoint/cmd/setpoint/install"
)

func installShell() *install.Shell {
	return &install.Shell{
		Finish: withSources, Mistake: func(err error) error { return usageError{err} }, Logger: newLogger, DataDir: setpoint.DefaultDataDir,
	}
}

func newInstall() *cobra.Command {
	return group(&cobra.Command{Use: "install", Short: "Make this machine a server or a node, which starts with the machine"},
		installShell().Install()...)
}

func newUninstall() *cobra.Command { return installShell().Uninstall() }
