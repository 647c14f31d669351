package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// clusterOf is the kubeconfig of a cluster of these servers; the last is current.
func clusterOf(servers ...string) *api.Config {
	config := api.NewConfig()
	config.AuthInfos["admin"] = &api.AuthInfo{Token: "t"}
	for _, server := range servers {
		config.Clusters[server] = &api.Cluster{Server: "https://" + server}
		config.Contexts[server] = &api.Context{Cluster: server, AuthInfo: "admin"}
	}
	config.CurrentContext = servers[len(servers)-1]
	return config
}

func kubeconfigCommand(t *testing.T, args ...string) (string, error) {
	t.Helper()
	root := newRoot()
	var out strings.Builder
	root.SetOut(&out)
	root.SetArgs(append([]string{"kubeconfig"}, args...))
	return out.String(), root.Execute()
}

// TestOwnKubeconfig: clients find the cluster where the environment has put it, as in an image, and where it is by default if it is not
// there.
func TestOwnKubeconfig(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("SETPOINT_DATA_DIR", dir)
	if got, want := ownKubeconfig(), filepath.Join(defaultDataDir(), "admin.kubeconfig"); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	own := filepath.Join(dir, "admin.kubeconfig")
	if err := os.WriteFile(own, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := ownKubeconfig(); got != own {
		t.Errorf("%s, want %s", got, own)
	}
}

// TestKubeconfigMerges: what is in the user's file stays, a second time changes nothing, and what was added can be taken away.
func TestKubeconfigMerges(t *testing.T) {
	dir := t.TempDir()
	own, others := filepath.Join(dir, "own"), filepath.Join(dir, "others")
	t.Setenv("KUBECONFIG", own+string(os.PathListSeparator)+others)
	for path, config := range map[string]*api.Config{
		own: clusterOf("work"), filepath.Join(dir, "one"): clusterOf("only"), filepath.Join(dir, "three"): clusterOf("s1", "s2"),
	} {
		if err := clientcmd.WriteToFile(*config, path); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		args     []string
		contexts []string
		current  string
	}{
		{[]string{"--kubeconfig", filepath.Join(dir, "one"), "--merge"}, []string{"setpoint", "work"}, "setpoint"},
		{[]string{"--kubeconfig", filepath.Join(dir, "one"), "--merge"}, []string{"setpoint", "work"}, "setpoint"},
		{
			[]string{"--kubeconfig", filepath.Join(dir, "three"), "--merge", "--name", "three"},
			[]string{"setpoint", "three-s1", "three-s2", "work"}, "three-s2",
		},
		{[]string{"--kubeconfig", filepath.Join(dir, "one"), "--remove"}, []string{"three-s1", "three-s2", "work"}, "three-s2"},
		{[]string{"--kubeconfig", filepath.Join(dir, "three"), "--remove", "--name", "three"}, []string{"work"}, ""},
	} {
		if _, err := kubeconfigCommand(t, step.args...); err != nil {
			t.Fatalf("%v: %v", step.args, err)
		}
		now, err := clientcmd.LoadFromFile(own)
		if err != nil {
			t.Fatal(err)
		}
		if got := slices.Sorted(maps.Keys(now.Contexts)); !slices.Equal(got, step.contexts) || now.CurrentContext != step.current {
			t.Errorf("%v: contexts %v, current %q, want %v, %q", step.args, got, now.CurrentContext, step.contexts, step.current)
		}
		for name, context := range now.Contexts {
			if now.Clusters[context.Cluster] == nil || now.AuthInfos[context.AuthInfo] == nil {
				t.Errorf("%v: the context %s is not whole", step.args, name)
			}
		}
	}
	if now, err := clientcmd.LoadFromFile(own); err != nil || len(now.Clusters) != 1 || len(now.AuthInfos) != 1 {
		t.Errorf("left: %v, %v", now, err)
	}
}

func TestKubeconfigRefuses(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "own"))
	for _, args := range [][]string{{"--merge", "--remove"}, {"--name", "x"}, {"--kubeconfig", "nowhere", "--merge"}, {os.DevNull}} {
		if out, err := kubeconfigCommand(t, args...); err == nil {
			t.Errorf("%v: %s", args, out)
		}
	}
}
