package userconfig

import (
	"bytes"
	"maps"
	"net/url"
	"slices"

	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/setpoint-io/setpoint/server/admin"
)

// Follow gives a kubeconfig one context for each member, in the place of those that lead to its current context's cluster as the same user.
// A context of a member's name or address stays as it is. Without members nothing changes.
func Follow(config *api.Config, members []admin.Member) *api.Config {
	next, current := config.DeepCopy(), config.Contexts[config.CurrentContext]
	if current == nil || config.Clusters[current.Cluster] == nil || len(members) == 0 {
		return next
	}
	ours := alike(config, current)
	for _, name := range ours {
		delete(next.Contexts, name)
		delete(next.Clusters, config.Contexts[name].Cluster)
	}
	var names []string
	for _, m := range members {
		name := contextOf(config, ours, m)
		if name == "" {
			name = add(next, config, current, m)
		} else {
			next.Contexts[name] = config.Contexts[name].DeepCopy()
		}
		names = append(names, name)
	}
	for _, c := range next.Contexts { // one of them may share its cluster with one that went; another may lead nowhere
		if cluster := config.Clusters[c.Cluster]; next.Clusters[c.Cluster] == nil && cluster != nil {
			next.Clusters[c.Cluster] = cluster.DeepCopy()
		}
	}
	if next.Contexts[next.CurrentContext] == nil {
		next.CurrentContext = slices.Min(names)
	}
	return next
}

// alike are the names of the contexts that lead to the cluster of one as the same user, sorted.
func alike(config *api.Config, of *api.Context) (names []string) {
	authority := config.Clusters[of.Cluster].CertificateAuthorityData
	for _, name := range slices.Sorted(maps.Keys(config.Contexts)) {
		c := config.Contexts[name]
		cluster := config.Clusters[c.Cluster]
		same := cluster != nil && c.AuthInfo == of.AuthInfo && len(authority) > 0 && bytes.Equal(cluster.CertificateAuthorityData, authority)
		if c == of || same {
			names = append(names, name)
		}
	}
	return names
}

// contextOf is which of the contexts leads to a member, "" if none does.
func contextOf(config *api.Config, ours []string, m admin.Member) string {
	if slices.Contains(ours, m.Name) {
		return m.Name
	}
	for _, name := range ours {
		if at, err := url.Parse(config.Clusters[config.Contexts[name].Cluster].Server); err == nil && at.Host == m.Address {
			return name
		}
	}
	return ""
}

// add makes a context of a member's name, which leads there as the current one does elsewhere. The name of another cluster's stays its.
func add(next, config *api.Config, current *api.Context, m admin.Member) string {
	name := m.Name
	if next.Contexts[name] != nil {
		name = current.AuthInfo + "-" + m.Name
	}
	context, cluster := current.DeepCopy(), config.Clusters[current.Cluster].DeepCopy()
	context.Cluster, cluster.Server, cluster.TLSServerName = name, "https://"+m.Address, ""
	next.Contexts[name], next.Clusters[name] = context, cluster
	return name
}
