package kubeconfig

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd/api"
)

// configOf has contexts, each CONTEXT=CLUSTER/USER with its cluster and user.
func configOf(contexts ...string) *api.Config {
	config := api.NewConfig()
	for _, text := range contexts {
		name, to, _ := strings.Cut(text, "=")
		cluster, user, _ := strings.Cut(to, "/")
		config.Contexts[name] = &api.Context{Cluster: cluster, AuthInfo: user}
		config.Clusters[cluster], config.AuthInfos[user] = &api.Cluster{}, &api.AuthInfo{}
	}
	return config
}

func textOf(config *api.Config) string {
	var all []string
	for name, context := range config.Contexts {
		all = append(all, name+"="+context.Cluster+"/"+context.AuthInfo)
	}
	slices.Sort(all)
	return strings.Join(all, " ") + "; " + strings.Join(slices.Sorted(maps.Keys(config.Clusters)), " ") + "; " +
		strings.Join(slices.Sorted(maps.Keys(config.AuthInfos)), " ")
}

// TestOnlyWhatWasAddedIsTaken: contexts that the user made of ours stay and go on working, and so does all of other clusters, whatever their names.
func TestOnlyWhatWasAddedIsTaken(t *testing.T) {
	one, three := named(configOf("a=a/admin"), "our"), named(configOf("a=a/admin", "b=b/admin", "c=c/admin"), "our")
	for name, c := range map[string]struct {
		own         []string
		ours        *api.Config
		taken, next string // next: added anew
	}{
		"one server": {[]string{"our=our/our", "x=x/x"}, one, "x=x/x; x; x", "our=our/our x=x/x; our x; our x"},
		"servers that went": {
			[]string{"our-a=our-a/our", "our-z=our-z/our", "x=x/x"}, three,
			"x=x/x; x; x", "our-a=our-a/our our-b=our-b/our our-c=our-c/our x=x/x; our-a our-b our-c x; our x",
		},
		"a context of the user's own": {
			[]string{"our=our/our", "staging=our/our"}, one, "staging=our/our; our; our", "our=our/our staging=our/our; our; our",
		},
		"one that leads elsewhere": {
			[]string{"our=our/our", "our-x=x/our", "x=x/x"}, one, "our-x=x/our x=x/x; x; our x", "our-x=x/our our=our/our x=x/x; our x; our x",
		},
		"another cluster of a longer name": {
			[]string{"our=our/our", "our-x=our-x/our-x"}, one, "our-x=our-x/our-x; our-x; our-x", "our-x=our-x/our-x our=our/our; our our-x; our our-x",
		},
		"a cluster of a context's name": {
			[]string{"our=our/our", "staging=our/our", "x=staging/x"}, one,
			"staging=our/our x=staging/x; our staging; our x", "our=our/our staging=our/our x=staging/x; our staging; our x",
		},
	} {
		own := configOf(c.own...)
		take(own, c.ours)
		if got := textOf(own); got != c.taken {
			t.Errorf("%s: taken: %s, want %s", name, got, c.taken)
		}
		own = configOf(c.own...)
		add(own, c.ours)
		if got := textOf(own); got != c.next {
			t.Errorf("%s: added: %s, want %s", name, got, c.next)
		}
	}
}
