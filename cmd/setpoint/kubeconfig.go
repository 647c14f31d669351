package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// kubeconfigName is what a cluster is called in a file that it shares with others.
const kubeconfigName = "setpoint"

var (
	errMergeOrRemove = errors.New("--merge and --remove exclude each other")
	errNameAlone     = errors.New("--name is for --merge and --remove")
	errNoContext     = errors.New("no context of this file is whole")
)

func newKubeconfig() *cobra.Command {
	var from, name string
	var merge, remove bool
	cmd := &cobra.Command{
		Use:   "kubeconfig",
		Short: "Print the kubeconfig of this machine's cluster, or merge it into yours",
		Long: "Print the administrator's kubeconfig of the cluster on this machine. With --merge add it to your own, the first file of\n" +
			"$KUBECONFIG or ~/.kube/config, and make it current there, so that any kubectl in any terminal finds the cluster. What is in that\n" +
			"file stays. --remove takes away what --merge added.",
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
		return changeOwn(cmd, named(config, name), remove)
	}
	return withSources(cmd)
}

// readKubeconfig reads a file whole: what it names of other files is in the result.
func readKubeconfig(path string) (*api.Config, error) {
	if path == "" {
		path = ownKubeconfig()
		if !exists(path) {
			return nil, errNoCluster
		}
	}
	config, err := clientcmd.LoadFromFile(path)
	if err != nil {
		return nil, err
	}
	return config, errors.Join(clientcmd.ResolveLocalPaths(config), api.FlattenConfig(config))
}

func printKubeconfig(cmd *cobra.Command, config *api.Config) error {
	text, err := clientcmd.Write(*config)
	if err != nil {
		return err
	}
	_, err = cmd.OutOrStdout().Write(text)
	return err
}

// named gives contexts, clusters and users of a kubeconfig names that are no other cluster's. A file of one context has the name itself,
// one of several the name and each context's own.
func named(config *api.Config, name string) *api.Config {
	renamed := api.NewConfig()
	for old, context := range config.Contexts {
		cluster, user := config.Clusters[context.Cluster], config.AuthInfos[context.AuthInfo]
		if cluster == nil || user == nil {
			continue
		}
		to := name
		if len(config.Contexts) > 1 {
			to += "-" + old
		}
		context, cluster, user = context.DeepCopy(), cluster.DeepCopy(), user.DeepCopy()
		context.Cluster, context.AuthInfo = to, name
		context.LocationOfOrigin, cluster.LocationOfOrigin, user.LocationOfOrigin = "", "", "" // or they were written there
		renamed.Contexts[to], renamed.Clusters[to], renamed.AuthInfos[name] = context, cluster, user
		if old == config.CurrentContext || renamed.CurrentContext == "" {
			renamed.CurrentContext = to
		}
	}
	return renamed
}

// changeOwn adds a cluster to the user's kubeconfig, or takes it away.
func changeOwn(cmd *cobra.Command, ours *api.Config, remove bool) error {
	if len(ours.Contexts) == 0 {
		return errNoContext
	}
	options := clientcmd.NewDefaultPathOptions()
	own, err := options.GetStartingConfig()
	if err != nil {
		return err
	}
	into, done := options.GetDefaultFilename(), "kubectl uses the context %s of %s now\n"
	if remove {
		take(own, ours)
		done = "the context %s is no longer in %s\n"
	} else {
		add(own, ours)
	}
	if err := clientcmd.ModifyConfig(options, *own, true); err != nil {
		return fmt.Errorf("%s: %w", into, err)
	}
	fmt.Fprintf(cmd.OutOrStdout(), done, ours.CurrentContext, into)
	return nil
}

func add(own, ours *api.Config) {
	for name, context := range ours.Contexts {
		own.Contexts[name], own.Clusters[name] = context, ours.Clusters[name]
	}
	for name, user := range ours.AuthInfos {
		own.AuthInfos[name] = user
	}
	own.CurrentContext = ours.CurrentContext
}

func take(own, ours *api.Config) {
	for name := range ours.Contexts {
		delete(own.Contexts, name)
		delete(own.Clusters, name)
		if own.CurrentContext == name {
			own.CurrentContext = ""
		}
	}
	for name := range ours.AuthInfos {
		delete(own.AuthInfos, name)
	}
}
