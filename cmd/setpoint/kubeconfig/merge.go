package kubeconfig

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// errNoContext is of a kubeconfig that leads nowhere.
var errNoContext = errors.New("no context of this file is whole")

// Read reads a file whole: what it names of other files is in the result.
func Read(path string) (*api.Config, error) {
	config, err := clientcmd.LoadFromFile(path)
	if err != nil {
		return nil, err
	}
	return config, errors.Join(clientcmd.ResolveLocalPaths(config), api.FlattenConfig(config))
}

// Merge adds the contexts of a cluster to the user's kubeconfig, under a name, and makes one current. It returns that and the file.
func Merge(cluster *api.Config, name string) (context, file string, err error) {
	return change(named(cluster, name), add)
}

// Remove takes away what Merge added.
func Remove(cluster *api.Config, name string) (context, file string, err error) {
	return change(named(cluster, name), take)
}

// change writes the user's kubeconfig, the first file of $KUBECONFIG or ~/.kube/config, anew.
func change(ours *api.Config, do func(own, ours *api.Config)) (context, file string, err error) {
	if len(ours.Contexts) == 0 {
		return "", "", errNoContext
	}
	options := clientcmd.NewDefaultPathOptions()
	own, err := options.GetStartingConfig()
	if err != nil {
		return "", "", err
	}
	do(own, ours)
	file = options.GetDefaultFilename()
	if err := clientcmd.ModifyConfig(options, *own, true); err != nil {
		return "", "", fmt.Errorf("%s: %w", file, err)
	}
	return ours.CurrentContext, file, nil
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

// add takes out those that were added before first: servers come and go.
func add(own, ours *api.Config) {
	take(own, ours)
	for name, context := range ours.Contexts {
		own.Contexts[name], own.Clusters[name] = context, ours.Clusters[name]
	}
	for name, user := range ours.AuthInfos {
		own.AuthInfos[name] = user
	}
	own.CurrentContext = ours.CurrentContext
}

// take takes out what add has made of our users, whichever servers it leads to. Contexts that the user made himself stay, with
// their clusters and users.
func take(own, ours *api.Config) {
	var clusters []string
	for name, context := range own.Contexts {
		if ours.AuthInfos[context.AuthInfo] == nil || !added(name, context) {
			continue
		}
		delete(own.Contexts, name)
		clusters = append(clusters, context.Cluster)
		if own.CurrentContext == name {
			own.CurrentContext = ""
		}
	}
	used := map[string]bool{}
	for _, context := range own.Contexts {
		clusters = slices.DeleteFunc(clusters, func(cluster string) bool { return cluster == context.Cluster })
		used[context.AuthInfo] = true
	}
	for _, cluster := range clusters {
		delete(own.Clusters, cluster)
	}
	for name := range ours.AuthInfos {
		if !used[name] {
			delete(own.AuthInfos, name)
		}
	}
}

// added reports whether a context has the names that named gives.
func added(name string, context *api.Context) bool {
	return context.Cluster == name && (name == context.AuthInfo || strings.HasPrefix(name, context.AuthInfo+"-"))
}
