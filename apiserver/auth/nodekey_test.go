package auth_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/apiserver/auth"
	"github.com/setpoint-io/setpoint/apiserver/kinds"
	"github.com/setpoint-io/setpoint/apiserver/storage"
	"github.com/setpoint-io/setpoint/internal/revocation"
	"github.com/setpoint-io/setpoint/internal/trust"
	"github.com/setpoint-io/setpoint/raftstore/raftstoretest"
	"github.com/setpoint-io/setpoint/raftstore/state"
)

// TestANodeIsWhoseKeyJoined under its name; of one that registered otherwise, it is whoever has a certificate.
func TestANodeIsWhoseKeyJoined(t *testing.T) {
	store := storage.New(raftstoretest.NewLocal(state.Options{}), kinds.NewScheme(), kinds.All())
	for name, annotations := range map[string]map[string]string{"joined": {trust.NodeKeyAnnotation: "key"}, "registered": nil} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations}}
		if _, err := store.Table(corev1.SchemeGroupVersion.WithResource("nodes")).Write(t.Context(), "", name,
			func(*storage.View) (*storage.Change, error) { return &storage.Change{Object: node}, nil }); err != nil {
			t.Fatal(err)
		}
	}
	keys := auth.NewNodeKeys(store)
	for who, want := range map[revocation.Identity]error{
		{User: "system:node:joined", Key: "key"}:       nil,
		{User: "system:node:joined", Key: "other"}:     auth.ErrNodeKey,
		{User: "system:node:joined"}:                   nil, // in this process, or acted as
		{User: "system:node:registered", Key: "other"}: nil,
		{User: "system:node:new", Key: "other"}:        auth.ErrNoNode,
		{User: "jane", Key: "other"}:                   nil,
	} {
		err := keys.Judge(ask(t, http.MethodGet, "/api/v1/pods"), who)
		if !errors.Is(err, want) || want == nil && err != nil {
			t.Errorf("%v: %v, want %v", who, err, want)
		}
	}
}

func ask(t *testing.T, method, path string) *http.Request {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, "https://a"+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	return request
}

// TestANodeWithoutANodeRegisters, and does nothing else.
func TestANodeWithoutANodeRegisters(t *testing.T) {
	keys := auth.NewNodeKeys(storage.New(raftstoretest.NewLocal(state.Options{}), kinds.NewScheme(), kinds.All()))
	for request, admitted := range map[[2]string]bool{
		{http.MethodPost, "/api/v1/nodes"}:               true,
		{http.MethodGet, "/api/v1/nodes/a"}:              true,
		{http.MethodGet, "/api/v1/nodes/b"}:              false,
		{http.MethodGet, "/api/v1/nodes"}:                false,
		{http.MethodGet, "/api/v1/nodes/a/status"}:       false,
		{http.MethodPatch, "/api/v1/nodes/a/status"}:     false,
		{http.MethodDelete, "/api/v1/nodes/a"}:           false,
		{http.MethodPost, "/api/v1/nodes/"}:              false,
		{http.MethodPost, "/api/v1/namespaces/a/events"}: false,
		{http.MethodGet, "/version"}:                     false,
	} {
		err := keys.Judge(ask(t, request[0], request[1]), revocation.Identity{User: "system:node:a", Key: "key"})
		if (err == nil) != admitted || err != nil && !errors.Is(err, auth.ErrNoNode) {
			t.Errorf("%v: %v", request, err)
		}
	}
}

// TestEndsOfNodesCertificates: the later one of each node that counts, for as long as it has a Node.
func TestEndsOfNodesCertificates(t *testing.T) {
	store := storage.New(raftstoretest.NewLocal(state.Options{}), kinds.NewScheme(), kinds.All())
	nodes := store.Table(corev1.SchemeGroupVersion.WithResource("nodes"))
	write := func(name string, change *storage.Change) {
		t.Helper()
		if _, err := nodes.Write(t.Context(), "", name, func(*storage.View) (*storage.Change, error) { return change, nil }); err != nil {
			t.Fatal(err)
		}
	}
	write("a", &storage.Change{Object: &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: "a", Annotations: map[string]string{trust.NodeKeyAnnotation: "key"},
	}}})
	keys := auth.NewNodeKeys(store)
	end := time.Unix(1e9, 0)
	ask := func(node, key string, end time.Time) {
		request := ask(t, http.MethodGet, "/api/v1/nodes/"+node)
		request.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{{NotAfter: end}}}
		_ = keys.Judge(request, revocation.Identity{User: "system:node:" + node, Key: key})
	}
	expect := func(step string, want ...trust.Expiry) {
		t.Helper()
		if got := keys.Expiries(); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", step, got, want)
		}
	}
	ask("a", "other", end.Add(time.Hour))
	ask("new", "key", end.Add(time.Hour))
	expect("who does not count, or has no Node yet")
	ask("a", "key", end)
	ask("a", "key", end.Add(-time.Hour))
	expect("the later of two", trust.Expiry{Kind: trust.KindNode, Name: "a", Expires: end})
	write("a", &storage.Change{Delete: true})
	expect("its Node is gone")
}

// TestTheLaterEndStaysOfRequestsAtOnce: a node has connections of its former certificate and of the new one.
func TestTheLaterEndStaysOfRequestsAtOnce(t *testing.T) {
	store := storage.New(raftstoretest.NewLocal(state.Options{}), kinds.NewScheme(), kinds.All())
	_, err := store.Table(corev1.SchemeGroupVersion.WithResource("nodes")).Write(t.Context(), "", "a",
		func(*storage.View) (*storage.Change, error) {
			return &storage.Change{Object: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}}}, nil
		})
	if err != nil {
		t.Fatal(err)
	}
	keys := auth.NewNodeKeys(store)
	var asking sync.WaitGroup
	var next, shown atomic.Int64 // shown: at least this end was
	next.Store(1e9)
	for range 8 {
		request := ask(t, http.MethodGet, "/api/v1/nodes/a")
		asking.Go(func() {
			certificate := &x509.Certificate{}
			request.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{certificate}}
			for end := next.Add(1); end < 1e9+200_000; end = next.Add(1) {
				certificate.NotAfter = time.Unix(end, 0)
				_ = keys.Judge(request, revocation.Identity{User: "system:node:a", Key: "key"})
				least := shown.Load()
				if got := keys.Expiries(); len(got) != 1 || got[0].Expires.Unix() < least {
					t.Errorf("%v, and %d was shown", got, least)
					return
				}
				shown.CompareAndSwap(least, max(least, end))
			}
		})
	}
	asking.Wait()
}
