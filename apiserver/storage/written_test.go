package storage

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestWrittenAt: who made each revision, and because of what.
func TestWrittenAt(t *testing.T) {
	store := newTestStore(0)
	maps, nodes := store.Table(configMaps), store.Table(corev1.SchemeGroupVersion.WithResource("nodes"))
	o := Origin{User: "alice", FieldManager: "kubectl", RequestID: "r", CauseUID: "u", CauseRevision: 3}
	a := configMap("a", nil)
	a.UID = "a-uid"
	put(t, nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "n-uid"}})
	for _, labels := range []map[string]string{nil, {"k": "v"}} {
		changed := a.DeepCopy()
		changed.Labels = labels
		_, err := maps.Write(WithOrigin(t.Context(), o), "n", "a", func(*View) (*Change, error) { return &Change{Object: changed}, nil })
		if err != nil {
			t.Fatal(err)
		}
	}
	remove(t, maps, "n", "a")
	mine := Written{Resource: configMaps.GroupResource(), Namespace: "n", Name: "a", UID: "a-uid"}
	created, changed, deleted := mine, mine, mine
	created.Created, created.Origin, changed.Origin, deleted.Deleted = true, o, o, true
	changed.Before, deleted.Before = 2, 3
	node := Written{Resource: nodes.kind.GroupResource(), Name: "n1", UID: "n-uid", Created: true}
	for i, want := range []Written{node, created, changed, deleted} {
		if got, ok := store.WrittenAt(uint64(i + 1)); !ok || got != want {
			t.Errorf("revision %d: %t\n got %+v\nwant %+v", i+1, ok, got, want)
		}
	}
	for _, revision := range []uint64{0, 5} {
		if got, ok := store.WrittenAt(revision); ok {
			t.Errorf("revision %d: %+v", revision, got)
		}
	}
}
