package scheduler

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
)

// gpuResource is the extended resource that gpuClass satisfies.
const gpuResource = "example.com/gpu"

func gpuClass() *resourcev1.DeviceClass {
	c := deviceClass("gpu")
	c.Spec.ExtendedResourceName = new(gpuResource)
	return c
}

// wanting requests so many of a resource.
func wanting(pod *corev1.Pod, name, n string) *corev1.Pod {
	pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceName(name): resource.MustParse(n)}
	return pod
}

// extendedClaims are the claims that were made for extended resources.
func (w *world) extendedClaims() []resourcev1.ResourceClaim {
	w.t.Helper()
	list, err := w.client.ResourceV1().ResourceClaims("default").List(w.t.Context(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return list.Items
}

// TestExtendedResourcesFromDevices: a pod with an extended resource that no node counts gets devices of the class for it. The
// scheduler makes its claim and tells the pod about it.
func TestExtendedResourcesFromDevices(t *testing.T) {
	for _, name := range []string{gpuResource, resourcev1.ResourceDeviceClassPrefix + "gpu"} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, twoNodes(gpuClass(), gpusOn("node-2", 2)), func(w *world) {
				w.createPod(wanting(testPod("a", "", ""), name, "2"))
				synctest.Wait()
				w.wantNode("a", "node-2")
				claims := w.extendedClaims()
				if len(claims) != 1 {
					t.Fatalf("%d claims", len(claims))
				}
				c, pod := &claims[0], w.pod("a")
				if !metav1.IsControlledBy(c, pod) || len(c.Finalizers) != 1 || len(c.Status.ReservedFor) != 1 ||
					len(c.Status.Allocation.Devices.Results) != 2 || !strings.HasPrefix(c.Name, "a-extended-resources-") {
					t.Errorf("claim: %+v", c)
				}
				want := &corev1.PodExtendedResourceClaimStatus{ResourceClaimName: c.Name, RequestMappings: []corev1.ContainerExtendedResourceRequest{
					{ContainerName: "main", ResourceName: name, RequestName: "container-0-request-0"}}}
				if diff := cmp.Diff(want, pod.Status.ExtendedResourceClaimStatus); diff != "" {
					t.Errorf("(-want +got)\n%s", diff)
				}
				w.createPod(wanting(testPod("b", "", ""), name, "1"))
				synctest.Wait()
				w.wantCondition("b", corev1.PodReasonUnschedulable, "0/2 nodes are available: 2 cannot allocate all claims.")
			})
		})
	}
}

// TestNodesThatCountAResource themselves need no devices for it.
func TestNodesThatCountAResource(t *testing.T) {
	counting := testNode("node-1", "z", "2", "8Gi")
	counting.Status.Allocatable[gpuResource] = resource.MustParse("1")
	inWorld(t, []runtime.Object{gpuClass(), counting, testNode("node-2", "z", "2", "8Gi")}, func(w *world) {
		w.createPod(wanting(testPod("a", "", ""), gpuResource, "1"))
		synctest.Wait()
		w.wantNode("a", "node-1")
		if n := len(w.extendedClaims()); n != 0 {
			t.Errorf("%d claims", n)
		}
	})
}

// TestAClassMakesRoom: the pod waits for a class that satisfies its resource.
func TestAClassMakesRoom(t *testing.T) {
	inWorld(t, twoNodes(gpusOn("node-2", 1)), func(w *world) {
		w.createPod(wanting(testPod("a", "", ""), gpuResource, "1"))
		synctest.Wait()
		w.wantCondition("a", corev1.PodReasonUnschedulable, "0/2 nodes are available: 2 Insufficient example.com/gpu.")
		if _, err := w.client.ResourceV1().DeviceClasses().Create(t.Context(), gpuClass(), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		w.rest()
		w.wantNode("a", "node-2")
	})
}

// TestExtendedClaimsOfFailedAttempts: what an attempt leaves behind is deleted before the next one, so there is one claim at most.
func TestExtendedClaimsOfFailedAttempts(t *testing.T) {
	forbidden := apierrors.NewForbidden(resourcev1.Resource("resourceclaims"), "x", errors.New("not now"))
	for what, fails := range map[string]struct{ verb, resource, subresource string }{
		"allocation": {"update", "resourceclaims", "status"},
		"pod status": {"patch", "pods", "status"},
		"deletion":   {"delete", "resourceclaims", ""},
		"binding":    {"create", "pods", "binding"},
	} {
		t.Run(what, func(t *testing.T) {
			inWorld(t, twoNodes(gpuClass(), gpusOn("node-2", 1)), func(w *world) {
				failures := 1
				w.client.PrependReactor(fails.verb, fails.resource, func(action clienttesting.Action) (bool, runtime.Object, error) {
					if action.GetSubresource() != fails.subresource || failures == 0 {
						return false, nil, nil
					}
					failures--
					return true, nil, forbidden
				})
				if what == "deletion" {
					w.onStatus(false, forbidden)
				}
				w.createPod(wanting(testPod("a", "", ""), gpuResource, "1"))
				time.Sleep(10 * time.Minute)
				synctest.Wait()
				w.wantNode("a", "node-2")
				if claims := w.extendedClaims(); len(claims) != 1 || w.pod("a").Status.ExtendedResourceClaimStatus.ResourceClaimName != claims[0].Name {
					t.Errorf("%d claims", len(claims))
				}
			})
		})
	}
}

// TestBindingConditions: a pod is bound when its devices are ready. When they fail, or take too long, others are looked for.
func TestBindingConditions(t *testing.T) {
	slow := func(node string) *resourcev1.ResourceSlice {
		s := gpusOn(node, 1)
		s.Spec.Devices[0].BindingConditions, s.Spec.Devices[0].BindingFailureConditions = []string{"attached"}, []string{"broken"}
		return s
	}
	report := func(w *world, condition string) {
		c := w.devices("one")
		r := c.Status.Allocation.Devices.Results[0]
		c.Status.Devices = []resourcev1.AllocatedDeviceStatus{{Driver: r.Driver, Pool: r.Pool, Device: r.Device,
			Conditions: []metav1.Condition{{Type: condition, Status: metav1.ConditionTrue, Reason: "Driver", Message: "told"}}}}
		if _, err := w.client.ResourceV1().ResourceClaims("default").UpdateStatus(w.t.Context(), c, metav1.UpdateOptions{}); err != nil {
			w.t.Fatal(err)
		}
	}
	for what, node := range map[string]string{"attached": "node-2", "broken": "node-1", "": "node-1"} {
		t.Run(what, func(t *testing.T) {
			inWorld(t, twoNodes(deviceClass("gpu"), slow("node-2"), deviceClaim("one", "", "")), func(w *world) {
				w.versioned()
				w.createPod(usingDevices(testPod("a", "", ""), "one"))
				time.Sleep(time.Minute)
				synctest.Wait()
				w.wantNode("a", "")
				w.wantDevice("one", "node-2/gpu-0", 1)
				w.wantEvent("BindingConditionsPending", "waiting for binding conditions for device on node node-2")
				if what != "attached" { // there are others, and the first one is not offered any more
					if _, err := w.client.ResourceV1().ResourceSlices().Create(t.Context(), gpusOn("node-1", 1), metav1.CreateOptions{}); err != nil {
						t.Fatal(err)
					}
					if err := w.client.ResourceV1().ResourceSlices().Delete(t.Context(), "slice-node-2", metav1.DeleteOptions{}); err != nil {
						t.Fatal(err)
					}
				}
				if what != "" {
					report(w, what)
				}
				time.Sleep(15 * time.Minute)
				synctest.Wait()
				w.wantNode("a", node)
				w.wantDevice("one", node+"/gpu-0", 1)
			})
		})
	}
}

// TestAlternatives: of two nodes that fit, the one is taken where the claim gets its first choice.
func TestAlternatives(t *testing.T) {
	claim := deviceClaim("one", "", "")
	choice := func(name string, n int64) resourcev1.DeviceSubRequest {
		return resourcev1.DeviceSubRequest{Name: name, DeviceClassName: "gpu", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: n}
	}
	claim.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "gpu", FirstAvailable: []resourcev1.DeviceSubRequest{choice("many", 2), choice("few", 1)}}}
	inWorld(t, twoNodes(deviceClass("gpu"), gpusOn("node-1", 1), gpusOn("node-2", 2), claim), func(w *world) {
		w.createPod(usingDevices(testPod("a", "", ""), "one"))
		synctest.Wait()
		w.wantNode("a", "node-2")
	})
}
