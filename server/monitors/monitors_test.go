package monitors

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/setpoint-io/setpoint/apiserver/aggregation"
	"github.com/setpoint-io/setpoint/apiserver/crd"
	"github.com/setpoint-io/setpoint/apiserver/kinds"
	"github.com/setpoint-io/setpoint/apiserver/storage"
	"github.com/setpoint-io/setpoint/controllers/reconcile"
	"github.com/setpoint-io/setpoint/raftstore/raftstoretest"
	"github.com/setpoint-io/setpoint/raftstore/state"
	"github.com/setpoint-io/setpoint/server/caches"
)

func writeConfigMap(t *testing.T, store *storage.Store, name string) {
	t.Helper()
	table := store.Table(corev1.SchemeGroupVersion.WithResource("configmaps"))
	_, err := table.Write(t.Context(), "n", name, func(*storage.View) (*storage.Change, error) {
		return &storage.Change{Object: &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name}}}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestMonitorsKnowEveryKindForOneTerm: what was written before the term and during
// it, of kinds that no cache has and of those that one has.
func TestMonitorsKnowEveryKindForOneTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := storage.New(raftstoretest.NewLocal(state.Options{}), kinds.NewScheme(), kinds.All())
		logger := slog.New(slog.NewTextHandler(t.Output(), nil))
		cached, err := caches.New(fake.NewSimpleClientset(), store, caches.Reads(store.Serves), logger)
		if err != nil {
			t.Fatal(err)
		}
		custom, err := crd.New(crd.Config{Storage: store})
		if err != nil {
			t.Fatal(err)
		}
		writeConfigMap(t, store, "before")
		term, end := context.WithCancel(t.Context())
		m := New(term, Config{ // no other server is there to be asked
			Storage: store, Caches: cached, Custom: custom, Remotes: aggregation.New(aggregation.Config{Store: store}), Logger: logger,
		})
		synctest.Wait()
		writeConfigMap(t, store, "during")
		synctest.Wait()
		all := m.All()
		for gvr := range caches.Tables(store) {
			if all[gvr] == nil {
				t.Errorf("nobody watches %s", gvr)
			}
		}
		if all[reconcile.CustomResourceDefinitions.Declaration().Resource] != cached.Kinds[reconcile.CustomResourceDefinitions.Declaration().Resource] {
			t.Error("reconcile.CustomResourceDefinitions.Declaration().Resource are watched twice")
		}
		kept := all[corev1.SchemeGroupVersion.WithResource("configmaps")].GetStore()
		if diff := cmp.Diff([]string{"n/before", "n/during"}, slices.Sorted(slices.Values(kept.ListKeys()))); diff != "" {
			t.Error(diff)
		}
		for _, o := range kept.List() {
			if _, brief := o.(*metav1.PartialObjectMetadata); !brief {
				t.Errorf("a whole %T is kept", o)
			}
		}
		end()
		m.Wait()
	})
}
