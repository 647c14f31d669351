package volumeattach

import (
	"testing"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
	"github.com/setpoint-io/setpoint/controllers/reconcile/reconciletest"
)

// TestADeletionThatTheCacheDoesNotShow: an attachment that was deleted is not taken for one that holds.
func TestADeletionThatTheCacheDoesNotShow(t *testing.T) {
	now := metav1.Now()
	deleting := func(a *storagev1.VolumeAttachment) { a.DeletionTimestamp = &now }
	for name, c := range map[string]struct {
		deleted bool
		api     func(*storagev1.VolumeAttachment) // nil: it is gone
		holds   bool
	}{
		"not deleted":          {false, nil, true}, // the API is not asked
		"gone":                 {true, nil, false},
		"being deleted":        {true, deleting, false},
		"another of the name":  {true, func(a *storagev1.VolumeAttachment) { a.UID = "2" }, false},
		"the delete failed":    {true, func(*storagev1.VolumeAttachment) {}, true},
		"shown, and forgotten": {false, deleting, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := reconciletest.New(t)
			cached := attachmentOf("v", "a")
			cached.UID = "1"
			if c.api != nil {
				stored := cached.DeepCopy()
				c.api(stored)
				reconciletest.Add(w, stored)
			}
			loop := &controller{env: &reconcile.Env{Client: w.Client, Clock: clock.RealClock{}}}
			loop.memory.deletes(cached.UID)
			if !c.deleted {
				loop.memory.shown(cached.UID)
			}
			got, err := loop.newest(t.Context(), cached, loop.memory.deleted()[cached.UID])
			if err != nil {
				t.Fatal(err)
			}
			if holds := got.DeletionTimestamp == nil; holds != c.holds {
				t.Errorf("holds: %v, want %v", holds, c.holds)
			}
		})
	}
}
