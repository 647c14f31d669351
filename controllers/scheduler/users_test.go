package scheduler

import (
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/controllers/scheduler/plugin"
)

// TestAClaimWakesItsUsers: a change of a claim tries those pods again that use it, and no others.
func TestAClaimWakesItsUsers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := testQueue(nil)
		names := map[string]string{"a": "one", "b": "two", "c": ""}
		for name, claim := range names {
			pod := testPod(name, "", "")
			if claim != "" {
				pod = usingDevices(pod, claim)
			}
			q.set(pod)
		}
		for range names {
			task, _ := q.pop(t.Context(), nil)
			if task.pod.Name == "b" {
				q.wakeUsers(types.NamespacedName{Namespace: "default", Name: "two"}) // while it is in flight
			}
			q.park(task.entry, plugin.DevicesChanged)
		}
		q.wakeUsers(types.NamespacedName{Namespace: "default", Name: "one"})
		q.wakeUsers(types.NamespacedName{Namespace: "other", Name: "one"})
		for name, where := range map[string]whereabouts{"a": woken, "b": woken, "c": parked} {
			if e := q.entries[testPod(name, "", "").UID]; e.where != where {
				t.Errorf("%s is at %d, want %d", name, e.where, where)
			}
		}
		for name := range names {
			q.remove(testPod(name, "", "").UID)
		}
		if len(q.users) != 0 {
			t.Errorf("left: %v", q.users)
		}
	})
}

// TestChangesOfClaims: what is written to somebody else's claim tries nobody again, and devices that are given back everybody.
func TestChangesOfClaims(t *testing.T) {
	other := deviceClaim("other", "x", "node-2")
	other.Status.Allocation.Devices = gpuAllocation("node-2")
	other.Finalizers = []string{"keep"}
	inWorld(t, twoNodes(deviceClass("gpu"), gpusOn("node-2", 1), deviceClaim("one", "", ""), other), func(w *world) {
		w.createPod(usingDevices(testPod("a", "", ""), "one"))
		synctest.Wait()
		w.wantCondition("a", corev1.PodReasonUnschedulable, "0/2 nodes are available: 2 cannot allocate all claims.")
		c := w.devices("other")
		c.Status.Allocation, c.Status.ReservedFor = nil, nil
		if _, err := w.client.ResourceV1().ResourceClaims("default").UpdateStatus(t.Context(), c, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		w.wantNode("a", "node-2")
	})
}
