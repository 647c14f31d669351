package differential

import (
	"context"
	"fmt"
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/dynamic-resource-allocation/resourceslice/tracker"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	"k8s.io/kubernetes/pkg/scheduler/util/assumecache"
)

// devicesOf is what upstream's scheduler knows of devices.
func devicesOf(ctx context.Context, t *testing.T, client *fake.Clientset, factory informers.SharedInformerFactory) fwk.SharedDRAManager {
	resource := factory.Resource().V1()
	slices, err := tracker.StartTracker(ctx, tracker.Options{
		EnableDeviceTaintRules: true, SliceInformer: resource.ResourceSlices(), TaintInformer: resource.DeviceTaintRules(), KubeClient: client,
	})
	if err != nil {
		t.Fatal(err)
	}
	claims := assumecache.NewAssumeCache(klog.FromContext(ctx), resource.ResourceClaims().Informer(), "ResourceClaim", "", nil)
	manager := dynamicresources.NewDRAManager(ctx, claims, slices, factory)
	if _, err := resource.DeviceClasses().Informer().AddEventHandler(manager.DeviceClassResolver().(cache.ResourceEventHandler)); err != nil {
		t.Fatal(err)
	}
	return manager
}

// addDevices gives some nodes devices, a few of them taken or tainted, and makes some pods ask for some.
func (w *placement) addDevices() {
	big := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "big"}}
	big.Spec.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: `device.attributes["gpu.example.com"].big`}}}
	big.Spec.ExtendedResourceName = new("gpu.example.com/big")
	w.others = append(w.others, big, &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "any"}})
	for _, node := range w.nodes {
		if w.chance(3) {
			continue
		}
		slice := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "slice-" + node.Name}, Spec: resourcev1.ResourceSliceSpec{
			Driver: "gpu.example.com", NodeName: &node.Name, Pool: resourcev1.ResourcePool{Name: node.Name, Generation: 1, ResourceSliceCount: 1}}}
		for i := range 1 + w.IntN(3) {
			slice.Spec.Devices = append(slice.Spec.Devices, w.device(fmt.Sprint("gpu-", i)))
		}
		w.others = append(w.others, slice)
		if w.chance(3) {
			w.partition(slice)
		}
		if w.chance(6) {
			node.Status.Allocatable["gpu.example.com/big"] = resource.MustParse(fmt.Sprint(w.IntN(3)))
		}
	}
	if w.chance(3) {
		w.others = append(w.others, &resourcev1.DeviceTaintRule{ObjectMeta: metav1.ObjectMeta{Name: "rule"}, Spec: resourcev1.DeviceTaintRuleSpec{
			DeviceSelector: &resourcev1.DeviceTaintSelector{Pool: &pick(w.generator, w.nodes...).Name},
			Taint:          resourcev1.DeviceTaint{Key: "broken", Effect: resourcev1.DeviceTaintEffectNoSchedule}}})
	}
	for i := range 4 {
		w.others = append(w.others, w.resourceClaim(fmt.Sprint("devices-", i)))
	}
	for _, pod := range w.pending {
		w.extend(pod)
		if w.chance(2) {
			continue
		}
		for i := range 1 + w.IntN(2) {
			name := fmt.Sprint("devices-", w.IntN(5)) // one of them is missing
			pod.Spec.ResourceClaims = append(pod.Spec.ResourceClaims, corev1.PodResourceClaim{Name: fmt.Sprint("claim-", i), ResourceClaimName: &name})
		}
		if n := len(pod.Spec.ResourceClaims); n == 2 && *pod.Spec.ResourceClaims[0].ResourceClaimName == *pod.Spec.ResourceClaims[1].ResourceClaimName {
			pod.Spec.ResourceClaims = pod.Spec.ResourceClaims[:1]
		}
	}
}

func (w *placement) device(name string) resourcev1.Device {
	big := w.chance(2)
	d := resourcev1.Device{Name: name, Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"big": {BoolValue: &big}}}
	if w.chance(4) {
		d.AllowMultipleAllocations = new(true)
	}
	if w.chance(3) {
		d.Capacity = map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse("8Gi")}}
	}
	if w.chance(8) {
		d.BindingConditions, d.BindingFailureConditions = []string{"attached"}, []string{"broken"}
	}
	if w.chance(6) {
		d.Taints = []resourcev1.DeviceTaint{{Key: "hot", Effect: resourcev1.DeviceTaintEffectNoSchedule}}
	}
	return d
}

// resourceClaim has devices, or asks for some.
func (w *placement) resourceClaim(name string) *resourcev1.ResourceClaim {
	c := &resourcev1.ResourceClaim{ObjectMeta: w.meta(name)}
	exactly := &resourcev1.ExactDeviceRequest{DeviceClassName: pick(w.generator, "any", "any", "any", "big", "missing")}
	exactly.AllocationMode, exactly.Count = resourcev1.DeviceAllocationModeExactCount, int64(1+w.IntN(2))
	if w.chance(5) {
		exactly.AllocationMode, exactly.Count = resourcev1.DeviceAllocationModeAll, 0
	}
	if w.chance(4) {
		half := resource.MustParse("4Gi")
		exactly.Capacity = &resourcev1.CapacityRequirements{Requests: map[resourcev1.QualifiedName]resource.Quantity{"memory": half}}
	}
	if w.chance(8) {
		exactly.AdminAccess = new(true)
	}
	c.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "gpu", Exactly: exactly}}
	if w.chance(3) {
		c.Spec.Devices.Requests = []resourcev1.DeviceRequest{w.alternatives()}
	}
	if w.chance(3) {
		node := pick(w.generator, w.nodes...).Name
		c.Status.Allocation = &resourcev1.AllocationResult{
			Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{
				{Request: "gpu", Driver: "gpu.example.com", Pool: node, Device: "gpu-0"}}},
			NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{
				{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{node}}}}}},
		}
	}
	return c
}

// partition makes the devices of a pool parts of one that cannot be had at the same time, or not all of them.
func (w *placement) partition(slice *resourcev1.ResourceSlice) {
	counters := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "counters-" + slice.Name}, Spec: *slice.Spec.DeepCopy()}
	counters.Spec.Devices = nil
	counters.Spec.SharedCounters = []resourcev1.CounterSet{{Name: "whole", Counters: map[string]resourcev1.Counter{
		"units": {Value: resource.MustParse(fmt.Sprint(2 + w.IntN(4)))}}}}
	slice.Spec.Pool.ResourceSliceCount, counters.Spec.Pool.ResourceSliceCount = 2, 2
	for i := range slice.Spec.Devices {
		slice.Spec.Devices[i].ConsumesCounters = []resourcev1.DeviceCounterConsumption{{CounterSet: "whole", Counters: map[string]resourcev1.Counter{
			"units": {Value: resource.MustParse(fmt.Sprint(1 + w.IntN(3)))}}}}
	}
	w.others = append(w.others, counters)
}

// extend has containers of a pod request extended resources that devices satisfy on some nodes.
func (w *placement) extend(pod *corev1.Pod) {
	if !w.chance(4) {
		return
	}
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			if w.chance(3) {
				continue
			}
			requests := maps.Clone(containers[i].Resources.Requests)
			if requests == nil {
				requests = corev1.ResourceList{}
			}
			name := pick(w.generator, "gpu.example.com/big", "gpu.example.com/big", resourcev1.ResourceDeviceClassPrefix+"any", "other.example.com/none")
			requests[corev1.ResourceName(name)] = resource.MustParse(fmt.Sprint(1 + w.IntN(2)))
			containers[i].Resources.Requests = requests
		}
	}
}

// alternatives are a request that prefers one of several.
func (w *placement) alternatives() resourcev1.DeviceRequest {
	r := resourcev1.DeviceRequest{Name: "gpu"}
	for i := range 2 + w.IntN(3) {
		r.FirstAvailable = append(r.FirstAvailable, resourcev1.DeviceSubRequest{
			Name: fmt.Sprint("choice-", i), DeviceClassName: pick(w.generator, "any", "any", "big"),
			AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: int64(1 + w.IntN(3)),
		})
	}
	return r
}
