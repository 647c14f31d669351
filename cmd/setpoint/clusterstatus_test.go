package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

func TestColored(t *testing.T) {
	table := "SERVER   ROLE\ns1       leader\ns2       unreachable: connection refused\n\nGOSSIP MEMBER\nn1   node   absent\n"
	got := colored(table)
	for _, want := range []string{"\x1b[1mSERVER   ROLE\x1b[0m\n", "\x1b[32mleader\x1b[0m", "\x1b[31munreachable\x1b[0m", "\x1b[33mabsent\x1b[0m"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in %q", want, got)
		}
	}
	if wantsColor(&strings.Builder{}) {
		t.Error("a buffer wants no colours")
	}
}

// TestAlike: only contexts of the same cluster and user may stand in for the current one.
func TestAlike(t *testing.T) {
	raw := &clientcmdapi.Config{
		CurrentContext: "a", Clusters: map[string]*clientcmdapi.Cluster{}, Contexts: map[string]*clientcmdapi.Context{},
	}
	for name, of := range map[string]struct{ authority, user string }{
		"a": {"ca", "admin"}, "c": {"ca", "admin"}, "b": {"ca", "admin"}, "guest": {"ca", "guest"}, "elsewhere": {"other", "admin"},
	} {
		raw.Clusters[name] = &clientcmdapi.Cluster{CertificateAuthorityData: []byte(of.authority)}
		raw.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: of.user}
	}
	if diff := cmp.Diff([]string{"b", "c"}, alike(raw)); diff != "" {
		t.Error(diff)
	}
	raw.CurrentContext = "missing"
	if names := alike(raw); len(names) != 0 {
		t.Errorf("without a current context: %v", names)
	}
}
