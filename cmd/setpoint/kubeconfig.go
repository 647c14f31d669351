package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/setpoint-io/setpoint/cmd/setpoint/kubeconfig"
)

// kubeconfigName is what a cluster is called in a file that it shares with others.
const kubeconfigName = "setpoint"

var (
	errMergeOrRemove = errors.New("--merge and --remove exclude each other")
	errNameAlone     = errors.New("--name is for --merge and --remove")
)

func newKubeconfig() *cobra.Command {
	var from, name string
	var merge, remove bool
	cmd := &cobra.Command{
		Use:   "kubeconfig",
		Short: "Print the kubeconfig of this machine's cluster, or merge it into yours",
		Long: "Print the administrator's kubeconfig of the cluster on this machine. With --merge add it to your own, the first file of\n" +
			"$KUBECONFIG or ~/.kube/config, and make it current there, so that any kubectl in any terminal finds the cluster. What is in that\n" +
			"file under other names stays. --remove takes away what --merge added, while the cluster's own kubeconfig is still there.",
		Example: "  setpoint kubeconfig --merge\n  setpoint kubeconfig --kubeconfig /tmp/three/admin.kubeconfig --merge --name three",
	}
	cmd.Flags().StringVar(&from, "kubeconfig", "", "another cluster's kubeconfig (default: this machine's)")
	cmd.Flags().BoolVar(&merge, "merge", false, "add it to your kubeconfig")
	cmd.Flags().BoolVar(&remove, "remove", false, "take it out of your kubeconfig")
	cmd.Flags().StringVar(&name, "name", kubeconfigName, "name of its context there; with several servers it is followed by theirs")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		switch {
		case merge && remove:
			return usageError{errMergeOrRemove}
		case name != kubeconfigName && !merge && !remove:
			return usageError{errNameAlone}
		}
		config, err := readKubeconfig(from)
		if err != nil {
			return err
		}
		if !merge && !remove {
			return printKubeconfig(cmd, config)
		}
		change, done := kubeconfig.Merge, "kubectl uses the context %s of %s now\n"
		if remove {
			change, done = kubeconfig.Remove, "the context %s is no longer in %s\n"
		}
		context, file, err := change(config, name)
		if err == nil {
			fmt.Fprintf(cmd.OutOrStdout(), done, context, file)
		}
		return err
	}
	return withSources(cmd)
}

func readKubeconfig(path string) (*api.Config, error) {
	if path == "" {
		path = ownKubeconfig()
		if !exists(path) {
			return nil, errNoCluster
		}
	}
	return kubeconfig.Read(path)
}

func printKubeconfig(cmd *cobra.Command, config *api.Config) error {
	text, err := clientcmd.Write(*config)
	if err != nil {
		return err
	}
	_, err = cmd.OutOrStdout().Write(text)
	return err
}
