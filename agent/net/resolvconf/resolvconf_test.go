package resolvconf

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestPolicies(t *testing.T) {
	file := filepath.Join(t.TempDir(), "resolv.conf")
	if err := os.WriteFile(file, []byte("nameserver 192.0.2.53\nsearch corp.example\noptions edns0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	dns := Node{Servers: []string{"10.96.0.10"}, Domain: "cluster.local", Path: file}
	cluster := []string{"ns.svc.cluster.local", "svc.cluster.local", "cluster.local", "corp.example"}
	for _, tc := range []struct {
		name     string
		edit     func(*corev1.Pod)
		servers  []string
		searches []string
		options  []string
	}{
		{"cluster first", func(p *corev1.Pod) { p.Spec.DNSPolicy = corev1.DNSClusterFirst }, []string{"10.96.0.10"}, cluster, []string{"ndots:5"}},
		{"default", func(p *corev1.Pod) { p.Spec.DNSPolicy = corev1.DNSDefault }, []string{"192.0.2.53"}, []string{"corp.example"}, []string{"edns0"}},
		{"host network", func(p *corev1.Pod) { p.Spec.DNSPolicy, p.Spec.HostNetwork = corev1.DNSClusterFirst, true }, []string{"192.0.2.53"}, []string{"corp.example"}, []string{"edns0"}},
		{"none", func(p *corev1.Pod) {
			two := "2"
			p.Spec.DNSPolicy = corev1.DNSNone
			p.Spec.DNSConfig = &corev1.PodDNSConfig{Nameservers: []string{"9.9.9.9"}, Searches: []string{"x"}, Options: []corev1.PodDNSConfigOption{{Name: "ndots", Value: &two}, {Name: "debug"}}}
		}, []string{"9.9.9.9"}, []string{"x"}, []string{"ndots:2", "debug"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "ns"}}
			tc.edit(p)
			got, _ := dns.Pod(p)
			if !cmp.Equal(got.Servers, tc.servers) || !cmp.Equal(got.Searches, tc.searches) || !cmp.Equal(got.Options, tc.options) {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestLimitsAreTold(t *testing.T) {
	p := &corev1.Pod{Spec: corev1.PodSpec{DNSPolicy: corev1.DNSNone, DNSConfig: &corev1.PodDNSConfig{Nameservers: []string{"1.1.1.1", "1.1.1.2", "1.1.1.3", "1.1.1.4"}}}}
	for i := range 40 {
		p.Spec.DNSConfig.Searches = append(p.Spec.DNSConfig.Searches, fmt.Sprintf("s%d", i))
	}
	got, omitted := Node{}.Pod(p)
	if len(got.Servers) != 3 || len(got.Searches) != 32 || len(omitted) != 2 || !strings.HasSuffix(omitted[0], "is: 1.1.1.1 1.1.1.2 1.1.1.3") {
		t.Errorf("%v %v", got, omitted)
	}
	p.Spec.DNSConfig = &corev1.PodDNSConfig{Searches: []string{strings.Repeat("a", 1000), strings.Repeat("b", 1000), strings.Repeat("c", 1000)}}
	if got, omitted = (Node{}).Pod(p); len(got.Searches) != 2 || len(omitted) != 1 {
		t.Errorf("%d search paths, %v", len(got.Searches), omitted)
	}
}

func TestParse(t *testing.T) {
	got := Parse("# comment\nnameserver 192.0.2.1 trailing\nnameserver\nsearch a\nsearch b c\noptions ndots:1\n; end\ndomain d\n")
	if diff := cmp.Diff(File{Servers: []string{"192.0.2.1"}, Searches: []string{"b", "c"}, Options: []string{"ndots:1"}}, got); diff != "" {
		t.Error(diff)
	}
	for text, want := range map[string]bool{"nameserver 127.0.0.53": true, "nameserver 127.0.0.53\nnameserver 192.0.2.1": false, "": false, "nameserver ::1": true} {
		if got := Parse(text).onlyLoopback(); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
	if f := Read(filepath.Join(t.TempDir(), "missing")); len(f.Servers) != 0 {
		t.Errorf("%+v", f)
	}
}
