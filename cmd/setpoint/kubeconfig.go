package main

import (
	"github.com/spf13/cobra"

	"github.com/setpoint-io/setpoint/cmd/setpoint/userconfig"
)

func newKubeconfig() *cobra.Command {
	shell := &userconfig.Shell{
		Own: func() (string, error) {
			path := ownKubeconfig()
			if !exists(path) {
				return "", errNoCluster
			}
			return path, nil
		},
		Finish: withSources, Mistake: func(err error) error { return usageError{err} },
	}
	return shell.Command()
}
