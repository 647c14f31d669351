package auth_test

import (
	"errors"
	"net/http"
	"testing"

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
