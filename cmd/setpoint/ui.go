package main

import (
	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/setpoint-io/setpoint/cmd/setpoint/kubeconfig"
	"github.com/setpoint-io/setpoint/cmd/setpoint/ui"
	"github.com/setpoint-io/setpoint/cmd/setpoint/whatif"
)

func newUI() *cobra.Command {
	shell := &ui.Shell{
		KubeconfigUsage: kubeconfigUsage, Finish: withSources, Servers: serversOf, WhatIf: whatif.AskInJSON,
		Mistake: func(err error) error { return usageError{err} },
	}
	return shell.Command()
}

// serversOf are the servers of a kubeconfig's current context: that of the context first, then those of the others that lead to the same
// cluster as the same user.
func serversOf(path string) ([]ui.Server, error) {
	raw, err := loadKubeconfig(path)
	if err != nil {
		return nil, err
	}
	var servers []ui.Server
	for _, name := range append([]string{raw.CurrentContext}, alike(raw)...) {
		config, err := clientcmd.NewNonInteractiveClientConfig(*raw, name, nil, nil).ClientConfig()
		if err != nil {
			return nil, err
		}
		kubeconfig.SayIfExpired(config)
		kubeconfig.SayIfRemoved(config, nil)
		servers = append(servers, ui.Server{Name: name, Config: config})
	}
	return servers, nil
}
