package scheduler

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
)

func deviceClass(name string) *resourcev1.DeviceClass {
	return &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// gpusOn is a pool of so many devices on a node.
func gpusOn(node string, n int) *resourcev1.ResourceSlice {
	s := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "slice-" + node}, Spec: resourcev1.ResourceSliceSpec{
		Driver: "gpu.example.com", NodeName: &node, Pool: resourcev1.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: 1}}}
	for i := range n {
		s.Spec.Devices = append(s.Spec.Devices, resourcev1.Device{Name: fmt.Sprint("gpu-", i)})
	}
	return s
}

// gpuAllocation is the first device of a node.
func gpuAllocation(node string) resourcev1.DeviceAllocationResult {
	return resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{
		{Request: "gpu", Driver: "gpu.example.com", Pool: node, Device: "gpu-0"}}}
}

func (w *world) devices(name string) *resourcev1.ResourceClaim {
	w.t.Helper()
	c, err := w.client.ResourceV1().ResourceClaims("default").Get(w.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// wantDevice tells which device a claim has; empty: none. Its users are counted.
func (w *world) wantDevice(claim, device string, users int) {
	w.t.Helper()
	c := w.devices(claim)
	got := ""
	if c.Status.Allocation != nil {
		r := c.Status.Allocation.Devices.Results[0]
		got = r.Pool + "/" + r.Device
	}
	if got != device || len(c.Status.ReservedFor) != users {
		w.t.Errorf("claim %s has %q and %d users, want %q and %d", claim, got, len(c.Status.ReservedFor), device, users)
	}
}

// TestDevicesAreAllocated: a pod goes where its claim finds a device; the claim has it before the pod is bound. Another claim
// waits until there is another device.
func TestDevicesAreAllocated(t *testing.T) {
	objects := twoNodes(deviceClass("gpu"), gpusOn("node-2", 1), deviceClaim("one", "", ""), deviceClaim("two", "", ""))
	inWorld(t, objects, func(w *world) {
		w.createPod(usingDevices(testPod("a", "", ""), "one"))
		synctest.Wait()
		w.wantNode("a", "node-2")
		w.wantDevice("one", "node-2/gpu-0", 1)
		if c := w.devices("one"); len(c.Finalizers) != 1 || c.Status.Allocation.AllocationTimestamp == nil {
			t.Errorf("finalizers %v, allocation %v", c.Finalizers, c.Status.Allocation)
		}
		w.createPod(usingDevices(testPod("b", "", ""), "two"))
		synctest.Wait()
		w.wantCondition("b", corev1.PodReasonUnschedulable, "0/2 nodes are available: 2 cannot allocate all claims.")
		w.createPod(usingDevices(testPod("c", "", ""), "one"))
		synctest.Wait()
		w.wantNode("c", "node-2")
		w.wantDevice("one", "node-2/gpu-0", 2)
		if _, err := w.client.ResourceV1().ResourceSlices().Create(t.Context(), gpusOn("node-1", 1), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		w.rest()
		w.wantNode("b", "node-1")
		w.wantDevice("two", "node-1/gpu-0", 1)
	})
}

// TestTaintedDevicesAreLeftOut until the rule that taints them is gone.
func TestTaintedDevicesAreLeftOut(t *testing.T) {
	rule := &resourcev1.DeviceTaintRule{ObjectMeta: metav1.ObjectMeta{Name: "broken"}, Spec: resourcev1.DeviceTaintRuleSpec{
		DeviceSelector: &resourcev1.DeviceTaintSelector{Pool: new("node-1")},
		Taint:          resourcev1.DeviceTaint{Key: "broken", Effect: resourcev1.DeviceTaintEffectNoSchedule}}}
	inWorld(t, twoNodes(deviceClass("gpu"), gpusOn("node-1", 1), deviceClaim("one", "", ""), rule), func(w *world) {
		w.createPod(usingDevices(testPod("a", "", ""), "one"))
		synctest.Wait()
		w.wantCondition("a", corev1.PodReasonUnschedulable, "0/2 nodes are available: 2 cannot allocate all claims.")
		if err := w.client.ResourceV1().DeviceTaintRules().Delete(t.Context(), "broken", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		w.rest()
		w.wantNode("a", "node-1")
	})
}

// onStatus lets the answers to writes of claims' statuses be lost or refused, as often as there are errors. With took the
// write has taken effect.
func (w *world) onStatus(took bool, failures ...error) {
	w.client.PrependReactor("update", "resourceclaims", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if action.GetSubresource() != "status" || len(failures) == 0 {
			return false, nil, nil
		}
		err := failures[0]
		failures = failures[1:]
		if took {
			claim := action.(clienttesting.UpdateAction).GetObject()
			if err := w.client.Tracker().Update(action.GetResource(), claim, action.GetNamespace()); err != nil {
				w.t.Error(err)
			}
		}
		return true, nil, err
	})
}

// versioned has updates of claims conflict that are of another version than the stored one, as the API does and the fake does not.
func (w *world) versioned() {
	w.client.PrependReactor("update", "resourceclaims", func(action clienttesting.Action) (bool, runtime.Object, error) {
		next := action.(clienttesting.UpdateAction).GetObject().(*resourcev1.ResourceClaim).DeepCopy()
		stored, err := w.client.Tracker().Get(action.GetResource(), next.Namespace, next.Name)
		if err != nil {
			return true, nil, err
		}
		if stored.(*resourcev1.ResourceClaim).ResourceVersion != next.ResourceVersion {
			return true, nil, apierrors.NewConflict(resourcev1.Resource("resourceclaims"), next.Name, nil)
		}
		next.ResourceVersion += "1"
		return true, next, w.client.Tracker().Update(action.GetResource(), next, next.Namespace)
	})
}

// TestALostAnswerAllocatesOnce: while nobody knows whether the one device is given away, no other claim gets it.
func TestALostAnswerAllocatesOnce(t *testing.T) {
	for _, took := range []bool{true, false} {
		t.Run(fmt.Sprint("took effect ", took), func(t *testing.T) {
			objects := twoNodes(deviceClass("gpu"), gpusOn("node-2", 1), deviceClaim("one", "", ""), deviceClaim("two", "", ""))
			inWorld(t, objects, func(w *world) {
				failures := []error{errors.New("connection lost")}
				if took { // the repetition meets what it has written itself
					failures = append(failures, apierrors.NewConflict(resourcev1.Resource("resourceclaims"), "one", nil))
				}
				w.onStatus(took, failures...)
				w.createPod(usingDevices(testPod("a", "", ""), "one"))
				synctest.Wait()
				w.wantNode("a", "")
				w.createPod(usingDevices(testPod("b", "", ""), "two"))
				synctest.Wait()
				w.wantNode("b", "")
				time.Sleep(time.Minute)
				synctest.Wait()
				w.wantNode("a", "node-2")
				w.wantDevice("one", "node-2/gpu-0", 1)
				w.wantNode("b", "")
				w.wantDevice("two", "", 0)
			})
		})
	}
}

// TestARefusedWriteGivesTheDeviceBack, and the pod is tried again.
func TestARefusedWriteGivesTheDeviceBack(t *testing.T) {
	inWorld(t, twoNodes(deviceClass("gpu"), gpusOn("node-2", 1), deviceClaim("one", "", "")), func(w *world) {
		w.onStatus(false, apierrors.NewForbidden(resourcev1.Resource("resourceclaims"), "one", errors.New("not now")))
		w.createPod(usingDevices(testPod("a", "", ""), "one"))
		synctest.Wait()
		w.wantCondition("a", corev1.PodReasonSchedulerError, `running PreBind plugin "DynamicResources": add reservation to claim default/one: `)
		time.Sleep(time.Minute)
		synctest.Wait()
		w.wantNode("a", "node-2")
		w.wantDevice("one", "node-2/gpu-0", 1)
	})
}

// TestDevicesInTheWayAreTakenBack: a claim that nobody else uses gets devices where its pod fits; one that another pod uses keeps
// what it has.
func TestDevicesInTheWayAreTakenBack(t *testing.T) {
	for user, node := range map[string]string{"": "node-2", "a": "node-2", "b": ""} {
		t.Run("used by "+user, func(t *testing.T) {
			claim := deviceClaim("one", user, "node-9")
			if user == "" {
				claim.Status.ReservedFor = nil
			}
			inWorld(t, twoNodes(deviceClass("gpu"), gpusOn("node-2", 1), claim), func(w *world) {
				w.versioned()
				w.createPod(usingDevices(testPod("a", "", ""), "one"))
				synctest.Wait()
				time.Sleep(time.Minute)
				synctest.Wait()
				w.wantNode("a", node)
				if node != "" {
					w.wantDevice("one", "node-2/gpu-0", 1)
				} else {
					w.wantCondition("a", corev1.PodReasonUnschedulable, "2 resourceclaim not available on the node")
				}
			})
		})
	}
}
