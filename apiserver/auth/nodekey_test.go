package auth_test

import (
	"errors"
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

// TestANodeIsWhoseKeyJoined under its name; before there is a Node, and of one that registered otherwise, it is whoever has a certificate.
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
	for who, refused := range map[revocation.Identity]bool{
		{User: "system:node:joined", Key: "key"}:       false,
		{User: "system:node:joined", Key: "other"}:     true,
		{User: "system:node:joined"}:                   false, // in this process, or acted as
		{User: "system:node:registered", Key: "other"}: false,
		{User: "system:node:new", Key: "other"}:        false,
		{User: "jane", Key: "other"}:                   false,
	} {
		err := keys.Judge(t.Context(), who)
		if errors.Is(err, auth.ErrNodeKey) != refused || !refused && err != nil {
			t.Errorf("%v: %v", who, err)
		}
	}
}
