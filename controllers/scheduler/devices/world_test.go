package devices

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"
)

func claim(name string, requests ...resourcev1.DeviceRequest) *resourcev1.ResourceClaim {
	return &resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-of-" + name), ResourceVersion: "1"},
		Spec:       resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: requests}},
	}
}

func exactly(class string, n int64) *resourcev1.ExactDeviceRequest {
	return &resourcev1.ExactDeviceRequest{DeviceClassName: class, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: n}
}

func pool(devices ...resourcev1.Device) *resourcev1.ResourceSlice {
	return &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "slice"}, Spec: resourcev1.ResourceSliceSpec{
		Driver: "gpu.example.com", NodeName: new("node"), Pool: resourcev1.ResourcePool{Name: "node", Generation: 1, ResourceSliceCount: 1}, Devices: devices}}
}

func class(name, expression string) *resourcev1.DeviceClass {
	c := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if expression != "" {
		c.Spec.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: expression}}}
	}
	return c
}

// newWorld is a World over caches that hold the objects.
func newWorld(t *testing.T, objects ...runtime.Object) *World {
	f := informers.NewSharedInformerFactory(fake.NewSimpleClientset(objects...), 0)
	w := New(f)
	f.Start(t.Context().Done())
	f.WaitForCacheSync(t.Context().Done())
	return w
}

// TestWhatClaimsGet: the devices of one claim on the only node, or why there are none.
func TestWhatClaimsGet(t *testing.T) {
	either := resourcev1.DeviceRequest{Name: "gpu", FirstAvailable: []resourcev1.DeviceSubRequest{
		{Name: "many", DeviceClassName: "any", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 3},
		{Name: "few", DeviceClassName: "any", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1}}}
	unknown := resourcev1.DeviceRequest{Name: "gpu", FirstAvailable: []resourcev1.DeviceSubRequest{{Name: "a", DeviceClassName: "none"}}}
	has := claim("other")
	has.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{
		{Driver: "gpu.example.com", Pool: "node", Device: "a"}}}}
	admin := has.DeepCopy()
	admin.Status.Allocation.Devices.Results[0].AdminAccess = new(true)
	tainted := resourcev1.Device{Name: "c", Taints: []resourcev1.DeviceTaint{{Key: "x", Effect: resourcev1.DeviceTaintEffectNoSchedule}}}
	conditional := resourcev1.Device{Name: "d", BindingConditions: []string{"ready"}, BindingFailureConditions: []string{"failed"}}
	a, b := resourcev1.Device{Name: "a"}, resourcev1.Device{Name: "b"}
	for _, c := range []struct {
		name    string
		request resourcev1.DeviceRequest
		objects []runtime.Object
		want    string // the last device, or the error
	}{
		{"one", resourcev1.DeviceRequest{Name: "gpu", Exactly: exactly("any", 1)}, []runtime.Object{pool(a, b)}, "a"},
		{"the other is taken", resourcev1.DeviceRequest{Name: "gpu", Exactly: exactly("any", 1)}, []runtime.Object{pool(a, b), has}, "b"},
		{"used by an administrator only", resourcev1.DeviceRequest{Name: "gpu", Exactly: exactly("any", 1)}, []runtime.Object{pool(a, b), admin}, "a"},
		{"too few", resourcev1.DeviceRequest{Name: "gpu", Exactly: exactly("any", 2)}, []runtime.Object{pool(a, b), has}, "cannot allocate all claims"},
		{"tainted", resourcev1.DeviceRequest{Name: "gpu", Exactly: exactly("any", 1)}, []runtime.Object{pool(tainted)}, "cannot allocate all claims"},
		{"with binding conditions", resourcev1.DeviceRequest{Name: "gpu", Exactly: exactly("any", 1)}, []runtime.Object{pool(conditional)}, "d"},
		{"second choice", either, []runtime.Object{pool(a, b)}, "a"},
		{"selected by the class", resourcev1.DeviceRequest{Name: "gpu", Exactly: exactly("never", 1)}, []runtime.Object{pool(a), class("never", "false")}, "cannot allocate all claims"},
		{"no class", resourcev1.DeviceRequest{Name: "gpu", Exactly: exactly("none", 1)}, nil, "request gpu: device class none does not exist"},
		{"no class of a choice", unknown, nil, "request gpu/a: device class none does not exist"},
		{"a request of the future", resourcev1.DeviceRequest{Name: "gpu"}, nil, "resource claim default/mine, request gpu: unknown request type"},
	} {
		t.Run(c.name, func(t *testing.T) {
			mine := claim("mine", c.request)
			w := newWorld(t, append(c.objects, mine, class("any", ""))...)
			got := ""
			allocate, err := w.Search(&corev1.Pod{}, Wish{Claims: []*resourcev1.ResourceClaim{mine}})
			if err == nil {
				var results []resourcev1.AllocationResult
				if results, err = allocate(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}}); err == nil {
					got = results[0].Devices.Results[len(results[0].Devices.Results)-1].Device
				}
			}
			if err != nil {
				got = err.Error()
			}
			if got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// TestPromises: a promised device is not given to others, until the promise ends.
func TestPromises(t *testing.T) {
	request := resourcev1.DeviceRequest{Name: "gpu", Exactly: exactly("any", 1)}
	mine, other := claim("mine", request), claim("other", request)
	w := newWorld(t, mine, other, class("any", ""), pool(resourcev1.Device{Name: "a"}))
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}}
	allocate, err := w.Search(&corev1.Pod{}, Wish{Claims: []*resourcev1.ResourceClaim{mine}})
	if err != nil {
		t.Fatal(err)
	}
	results, err := allocate(node)
	if err != nil {
		t.Fatal(err)
	}
	promised := []Allocation{{Claim: mine, Result: &results[0]}}
	w.Promise(promised)
	if _, err := w.Search(&corev1.Pod{}, Wish{Claims: []*resourcev1.ResourceClaim{mine}}); err == nil || err.Error() != "resource claim default/mine is in the process of being allocated" {
		t.Errorf("got %v", err)
	}
	fits := func() error {
		allocate, err := w.Search(&corev1.Pod{}, Wish{Claims: []*resourcev1.ResourceClaim{other}})
		if err == nil {
			_, err = allocate(node)
		}
		return err
	}
	if err := fits(); !errors.Is(err, errNotAll) {
		t.Errorf("while it is promised: %v", err)
	}
	stored := mine.DeepCopy()
	stored.ResourceVersion = "2"
	w.Written(promised, []*resourcev1.ResourceClaim{stored})
	w.Forget(promised)
	if err := fits(); !errors.Is(err, errNotAll) {
		t.Errorf("while the cache lags: %v", err)
	}
	w.promises[mine.UID].written = mine // the cache has this version, without devices: they were taken back
	if err := fits(); err != nil {
		t.Errorf("after it: %v", err)
	}
}

// TestReserveMeetsOthers: what happened to the claim since the decision is not overwritten.
func TestReserveMeetsOthers(t *testing.T) {
	elsewhere := claim("c")
	elsewhere.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{
		Results: []resourcev1.DeviceRequestAllocationResult{{Device: "z"}}}}
	deleted := claim("c")
	deleted.DeletionTimestamp, deleted.Finalizers = &metav1.Time{}, []string{"x"}
	replaced := claim("c")
	replaced.UID = "another"
	for want, stored := range map[string]*resourcev1.ResourceClaim{
		"claim default/c got allocated elsewhere in the meantime": elsewhere,
		"claim default/c got deleted in the meantime":             replaced,
	} {
		synctest.Test(t, func(t *testing.T) {
			client := fake.NewSimpleClientset(stored)
			client.PrependReactor("update", "resourceclaims", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, nil, apierrors.NewConflict(resourcev1.Resource("resourceclaims"), "c", nil)
			})
			w := &Writer{Client: client, Clock: clock.RealClock{}}
			_, err := w.Reserve(t.Context(), &corev1.Pod{}, []Allocation{{Claim: claim("c"), Result: &resourcev1.AllocationResult{}}})
			if err == nil || err.Error() != want {
				t.Errorf("got %v, want %s", err, want)
			}
		})
	}
	if err := meanwhile(deleted, Allocation{Claim: deleted}); err == nil {
		t.Error("a claim that is being deleted is reserved")
	}
	if err := meanwhile(claim("c"), Allocation{Claim: claim("c")}); err == nil {
		t.Error("a claim without devices is reserved as it is")
	}
}

// TestReserveEnds with its context, whatever is unknown then.
func TestReserveEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewSimpleClientset(claim("c"))
		client.PrependReactor("*", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, errors.New("no connection")
		})
		ctx, cancel := context.WithTimeout(t.Context(), 10*repeatAfter)
		defer cancel()
		w := &Writer{Client: client, Clock: clock.RealClock{}}
		if _, err := w.Reserve(ctx, &corev1.Pod{}, []Allocation{{Claim: claim("c"), Result: &resourcev1.AllocationResult{}}}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}
