package main

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

func TestWhyNoAnswer(t *testing.T) {
	post := func(err error) error { return &url.Error{Op: "Post", URL: "https://10.0.0.1:6443/x", Err: err} }
	dial := func(err error) error { return post(&net.OpError{Op: "dial", Net: "tcp", Err: err}) }
	for _, c := range []struct {
		err  error
		want string
	}{
		{dial(syscall.ECONNREFUSED), "connection refused"},
		{dial(syscall.EHOSTUNREACH), "no route to it"},
		{dial(&net.DNSError{Err: "no such host", Name: "server-1"}), "unknown host server-1"},
		{post(context.DeadlineExceeded), "no answer within 3s"},
		{post(x509.UnknownAuthorityError{}), "its certificate is not trusted"},
		{post(fmt.Errorf("read: %w", errors.New("connection reset by peer"))), "connection reset by peer"},
	} {
		if got := whyNoAnswer(c.err); got != c.want {
			t.Errorf("%v: got %q, want %q", c.err, got, c.want)
		}
	}
}

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
