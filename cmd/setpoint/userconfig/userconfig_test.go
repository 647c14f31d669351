package userconfig

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/setpoint-io/setpoint/internal/trust"
	"github.com/setpoint-io/setpoint/server/admin"
)

func TestWhoMayHaveAKubeconfig(t *testing.T) {
	long := strings.Repeat("x", 300)
	for _, c := range []struct {
		user User
		want error
	}{
		{User{"jane", nil, lifeDefault}, nil},
		{User{"jane@example.com", []string{"dev", "corp:ops"}, lifeMax}, nil},
		{User{"root", []string{trust.GroupMasters}, lifeMin}, nil},
		{User{"", nil, lifeDefault}, ErrName},
		{User{"admin", nil, lifeDefault}, ErrName},
		{User{"system:node:a", nil, lifeDefault}, ErrName},
		{User{"system:serviceaccount:a:b", nil, lifeDefault}, ErrName},
		{User{"a\nb", nil, lifeDefault}, ErrName},
		{User{long, nil, lifeDefault}, ErrName},
		{User{"jane", []string{"system:nodes"}, lifeDefault}, ErrGroup},
		{User{"jane", []string{"setpoint:servers"}, lifeDefault}, ErrGroup},
		{User{"jane", []string{""}, lifeDefault}, ErrGroup},
		{User{"jane", []string{long}, lifeDefault}, ErrGroup},
		{User{"jane", slices.Repeat([]string{"a"}, groupsMax+1), lifeDefault}, ErrGroup},
		{User{"jane", nil, lifeMin - time.Second}, ErrLife},
		{User{"jane", nil, lifeMax + time.Second}, ErrLife},
	} {
		if err := c.user.Validate(); !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("%.40v: %v, want %v", c.user, err, c.want)
		}
	}
}

// ways tells which address each context leads to, and which is current.
func ways(config *api.Config) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(config.Contexts)) {
		current := ""
		if name == config.CurrentContext {
			current = "*"
		}
		all = append(all, fmt.Sprintf("%s%s=%s", current, name, config.Clusters[config.Contexts[name].Cluster].Server))
	}
	return strings.Join(all, " ")
}

// of is a kubeconfig of name=address, the first current, and one of another cluster.
func of(servers ...string) *api.Config {
	config := api.NewConfig()
	add := func(name, address, authority, user string) {
		config.Clusters[name] = &api.Cluster{Server: "https://" + address, CertificateAuthorityData: []byte(authority)}
		config.Contexts[name] = &api.Context{Cluster: name, AuthInfo: user}
		config.AuthInfos[user] = &api.AuthInfo{Token: "t"}
	}
	for _, server := range servers {
		name, address, _ := strings.Cut(server, "=")
		add(name, address, "ours", "admin")
	}
	config.CurrentContext, _, _ = strings.Cut(servers[0], "=")
	add("work", "work:1", "theirs", "me")
	return config
}

func TestContextsFollowTheMembers(t *testing.T) {
	for name, c := range map[string]struct {
		have, members []string
		want          string
	}{
		"the same":              {[]string{"s1=a:1", "s2=b:1"}, []string{"s1=a:1", "s2=b:1"}, "*s1=https://a:1 s2=https://b:1 work=https://work:1"},
		"nobody tells":          {[]string{"s1=a:1"}, nil, "*s1=https://a:1 work=https://work:1"},
		"its own addresses":     {[]string{"s1=127.0.0.1:6441"}, []string{"s1=a:1"}, "*s1=https://127.0.0.1:6441 work=https://work:1"},
		"its own names":         {[]string{"mine-s1=a:1"}, []string{"s1=a:1", "s2=b:1"}, "*mine-s1=https://a:1 s2=https://b:1 work=https://work:1"},
		"one came, one went":    {[]string{"s1=a:1", "s2=b:1"}, []string{"s2=b:1", "s3=c:1"}, "*s2=https://b:1 s3=https://c:1 work=https://work:1"},
		"all were replaced":     {[]string{"s1=a:1"}, []string{"s4=d:1", "s3=c:1"}, "*s3=https://c:1 s4=https://d:1 work=https://work:1"},
		"a name of another one": {[]string{"s1=a:1"}, []string{"work=b:1"}, "*admin-work=https://b:1 work=https://work:1"},
	} {
		var members []admin.Member
		for _, m := range c.members {
			name, address, _ := strings.Cut(m, "=")
			members = append(members, admin.Member{Name: name, Address: address})
		}
		have := of(c.have...)
		if got := ways(Follow(have, members)); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		if ways(have) != ways(of(c.have...)) {
			t.Errorf("%s: what was given was changed", name)
		}
	}
}

// TestFollowLeavesAContextThatLeadsNowhere as it is: a cluster that is nil cannot be written.
func TestFollowLeavesAContextThatLeadsNowhere(t *testing.T) {
	have := &api.Config{
		CurrentContext: "s1", Clusters: map[string]*api.Cluster{"s1": {Server: "https://a:1"}},
		Contexts: map[string]*api.Context{"s1": {Cluster: "s1", AuthInfo: "admin"}, "lost": {Cluster: "gone", AuthInfo: "admin"}},
	}
	next := Follow(have, []admin.Member{{Name: "s1", Address: "a:1"}})
	if _, err := clientcmd.Write(*next); err != nil || next.Contexts["lost"] == nil || len(next.Clusters) != 1 {
		t.Errorf("%v: %+v", err, next)
	}
}

// TestARequestLeavesNothingBehind, whether it is signed, refused or forgotten.
func TestARequestLeavesNothingBehind(t *testing.T) {
	for name, c := range map[string]struct {
		signs func(*certificatesv1.CertificateSigningRequest)
		want  string // of the error
	}{
		"signed": {func(csr *certificatesv1.CertificateSigningRequest) { csr.Status.Certificate = []byte("signed") }, ""},
		"failed": {func(csr *certificatesv1.CertificateSigningRequest) {
			csr.Status.Conditions = append(csr.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
				Type: certificatesv1.CertificateFailed, Status: corev1.ConditionTrue, Reason: "Bad", Message: "no such life",
			})
		}, "Bad: no such life"},
		"forgotten": {func(*certificatesv1.CertificateSigningRequest) {}, "does a server lead?"},
	} {
		client := fake.NewClientset()
		client.PrependReactor("create", "certificatesigningrequests", func(a clienttesting.Action) (bool, runtime.Object, error) {
			a.(clienttesting.CreateAction).GetObject().(*certificatesv1.CertificateSigningRequest).Name = "r" // the fake makes no names
			return false, nil, nil
		})
		client.PrependReactor("update", "certificatesigningrequests", func(a clienttesting.Action) (bool, runtime.Object, error) {
			csr := a.(clienttesting.UpdateAction).GetObject().(*certificatesv1.CertificateSigningRequest)
			if a.GetSubresource() != "approval" || csr.Spec.SignerName != certificatesv1.KubeAPIServerClientSignerName || *csr.Spec.ExpirationSeconds != 3600 {
				t.Errorf("%s: %v", name, csr)
			}
			c.signs(csr)
			return true, csr, client.Tracker().Update(certificatesv1.SchemeGroupVersion.WithResource("certificatesigningrequests"), csr, "")
		})
		u := &User{Name: "jane", Life: time.Hour}
		r, err := newRequest(u)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 3*signedPoll)
		got, err := r.byAPI(ctx, client, u)
		cancel()
		if c.want == "" && (err != nil || string(got) != "signed") || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %s, %v", name, got, err)
		}
		left, err := client.CertificatesV1().CertificateSigningRequests().List(t.Context(), metav1.ListOptions{})
		if err != nil || len(left.Items) > 0 {
			t.Errorf("%s: left %v, %v", name, left.Items, err)
		}
	}
}
