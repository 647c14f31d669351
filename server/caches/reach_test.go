package caches

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/apiserver/kinds"
	"github.com/setpoint-io/setpoint/apiserver/storage"
	"github.com/setpoint-io/setpoint/controllers/reconcile"
	"github.com/setpoint-io/setpoint/raftstore/raftstoretest"
	"github.com/setpoint-io/setpoint/raftstore/state"
)

func TestLeadersWaitForTheirCaches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		store := storage.New(raftstoretest.NewLocal(state.Options{}), kinds.NewScheme(), kinds.All())
		c := cachesOf(t, store, reconcile.ConfigMaps)
		c.StartWithContext(ctx)
		defer c.Shutdown()
		defer cancel()
		for _, name := range []string{"a", "b", "c"} {
			writeConfigMap(t, store, name)
			if err := c.CatchUp(ctx); err != nil {
				t.Fatal(err)
			}
			lister := c.Core().V1().ConfigMaps().Lister()
			if _, err := lister.ConfigMaps("n").Get(name); err != nil {
				t.Errorf("caught up, but: %v", err)
			}
		}
		start := time.Now()
		if err := c.CatchUp(ctx); err != nil || time.Since(start) > 5*time.Millisecond {
			t.Errorf("in the quiet case it took %v, %v", time.Since(start), err)
		}
		waitCtx, stop := context.WithTimeout(ctx, time.Second)
		defer stop()
		if err := c.reach(waitCtx, store.Revision()+1); err == nil {
			t.Error("caches claim to hold what was never written")
		}
	})
}

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
