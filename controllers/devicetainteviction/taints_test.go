package devicetainteviction

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// begin is when taints are added.
var begin = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func noExecute(key string, after time.Duration) resourcev1.DeviceTaint {
	return resourcev1.DeviceTaint{Key: key, Effect: resourcev1.DeviceTaintEffectNoExecute, TimeAdded: &metav1.Time{Time: begin.Add(after)}}
}

func tolerates(key string, seconds *int64) resourcev1.DeviceToleration {
	return resourcev1.DeviceToleration{
		Key: key, Operator: resourcev1.DeviceTolerationOpExists, Effect: resourcev1.DeviceTaintEffectNoExecute, TolerationSeconds: seconds,
	}
}

// newSlice is a slice of pool p with device d.
func newSlice(name string, generation int64, taints ...resourcev1.DeviceTaint) *resourcev1.ResourceSlice {
	return &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourcev1.ResourceSliceSpec{
		Driver: "dr", Pool: resourcev1.ResourcePool{Name: "p", Generation: generation},
		Devices: []resourcev1.Device{{Name: "d", Taints: taints}, {Name: "e"}},
	}}
}

func newRule(name string, selector *resourcev1.DeviceTaintSelector, effect resourcev1.DeviceTaintEffect, after time.Duration) *resourcev1.DeviceTaintRule {
	taint := noExecute(name, after)
	taint.Effect = effect
	return &resourcev1.DeviceTaintRule{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Generation: 1},
		Spec:       resourcev1.DeviceTaintRuleSpec{DeviceSelector: selector, Taint: taint},
	}
}

func newPod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name)}, Spec: corev1.PodSpec{
		NodeName: "n", ResourceClaims: []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: new("c")}},
	}}
}

// newClaim has device d for the pods.
func newClaim(tolerations []resourcev1.DeviceToleration, pods ...string) *resourcev1.ResourceClaim {
	c := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"}}
	c.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{
		{Request: "r", Driver: "dr", Pool: "p", Device: "d", Tolerations: tolerations},
	}}}
	for _, pod := range pods {
		c.Status.ReservedFor = append(c.Status.ReservedFor,
			resourcev1.ResourceClaimConsumerReference{Resource: "pods", Name: pod, UID: types.UID("uid-" + pod)})
	}
	return c
}

func TestEvictionOfAPod(t *testing.T) {
	claim := newClaim(nil, "a")
	two := newClaim(nil, "a")
	two.Status.Allocation.Devices.Results = append(two.Status.Allocation.Devices.Results,
		resourcev1.DeviceRequestAllocationResult{Request: "s", Driver: "dr", Pool: "p", Device: "e", Tolerations: nil})
	tainted := []*resourcev1.ResourceSlice{newSlice("s", 1, noExecute("k", time.Minute))}
	all, other := &resourcev1.DeviceTaintSelector{}, &resourcev1.DeviceTaintSelector{Device: new("x")}
	changed := func(change func(*corev1.Pod)) *corev1.Pod {
		p := newPod("a")
		change(p)
		return p
	}
	forPod := func(owner types.UID) *resourcev1.ResourceClaim {
		c := newClaim(nil, "a")
		c.OwnerReferences = []metav1.OwnerReference{{UID: owner, Controller: new(true)}}
		return c
	}
	notReserved := forPod("uid-a")
	notReserved.Status.ReservedFor = nil
	templated := changed(func(p *corev1.Pod) {
		p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: new("t")}}
		p.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "gpu", ResourceClaimName: new("c")}}
	})
	extended := changed(func(p *corev1.Pod) {
		p.Spec.ResourceClaims = nil
		p.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{ResourceClaimName: "c"}
	})
	for name, c := range map[string]struct {
		pod    *corev1.Pod
		claim  *resourcev1.ResourceClaim
		slices []*resourcev1.ResourceSlice
		rules  []*resourcev1.DeviceTaintRule
		want   string // time after begin and rules; empty: it stays
	}{
		"no taint":                         {newPod("a"), claim, []*resourcev1.ResourceSlice{newSlice("s", 1)}, nil, ""},
		"taint of a slice":                 {newPod("a"), claim, tainted, nil, "1m0s"},
		"the earliest of two":              {newPod("a"), claim, []*resourcev1.ResourceSlice{newSlice("s", 1, noExecute("k", time.Minute), noExecute("l", time.Second))}, nil, "1s"},
		"of another effect":                {newPod("a"), claim, []*resourcev1.ResourceSlice{newSlice("s", 1, resourcev1.DeviceTaint{Key: "k", Effect: "NoSchedule"})}, nil, ""},
		"of an old generation":             {newPod("a"), claim, append([]*resourcev1.ResourceSlice{newSlice("t", 2)}, tainted...), nil, ""},
		"taint of a rule":                  {newPod("a"), claim, nil, []*resourcev1.DeviceTaintRule{newRule("r", all, "NoExecute", time.Hour)}, "1h0m0s r"},
		"of rule and slice":                {newPod("a"), two, tainted, []*resourcev1.DeviceTaintRule{newRule("r", all, "NoExecute", time.Hour)}, "1m0s r"},
		"of a rule for others":             {newPod("a"), claim, nil, []*resourcev1.DeviceTaintRule{newRule("r", other, "NoExecute", 0)}, ""},
		"of a rule without a selector":     {newPod("a"), claim, nil, []*resourcev1.DeviceTaintRule{newRule("r", nil, "NoExecute", 0)}, ""},
		"not placed":                       {changed(func(p *corev1.Pod) { p.Spec.NodeName = "" }), claim, tainted, nil, ""},
		"ending":                           {changed(func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} }), claim, tainted, nil, ""},
		"finished":                         {changed(func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }), claim, tainted, nil, ""},
		"not reserved":                     {newPod("b"), claim, tainted, nil, ""},
		"not allocated":                    {newPod("a"), &resourcev1.ResourceClaim{}, tainted, nil, ""},
		"no claim":                         {newPod("a"), nil, tainted, nil, ""},
		"claim made for it":                {templated, forPod("uid-a"), tainted, nil, "1m0s"},
		"claim made for another":           {templated, forPod("uid-b"), tainted, nil, ""},
		"claim of a name, whoever owns it": {newPod("a"), forPod("uid-b"), tainted, nil, "1m0s"},
		"of extended resources":            {extended, forPod("uid-a"), tainted, nil, "1m0s"},
		"of extended resources of another": {extended, forPod("uid-b"), tainted, nil, ""},
		"of extended resources, for all":   {extended, claim, tainted, nil, ""},
		"extended, and not reserved":       {extended, notReserved, tainted, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			v := view{rules: c.rules, pool: func(string, string) []*resourcev1.ResourceSlice { return c.slices }}
			e := v.evictionOf(c.pod, func(string) *resourcev1.ResourceClaim { return c.claim })
			got := ""
			if e != nil {
				got = e.when.Sub(begin).String()
				for rule := range e.rules {
					got += " " + string(rule)
				}
			}
			if got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestTolerations(t *testing.T) {
	sec := func(n int64) *int64 { return &n }
	for name, c := range map[string]struct {
		tolerations []resourcev1.DeviceToleration
		want        time.Duration
		stays       bool
	}{
		"none":              {nil, 0, false},
		"forever":           {[]resourcev1.DeviceToleration{tolerates("k", nil)}, 0, true},
		"forever, and not":  {[]resourcev1.DeviceToleration{tolerates("k", sec(5)), tolerates("k", nil)}, 0, true},
		"the shortest":      {[]resourcev1.DeviceToleration{tolerates("k", sec(7)), tolerates("", sec(5))}, 5 * time.Second, false},
		"negative":          {[]resourcev1.DeviceToleration{tolerates("k", sec(-5))}, 0, false},
		"beyond a duration": {[]resourcev1.DeviceToleration{tolerates("k", sec(math.MaxInt64))}, tolerationMax, false},
		"of another taint":  {[]resourcev1.DeviceToleration{tolerates("l", sec(5))}, 0, false},
		"of another effect": {[]resourcev1.DeviceToleration{{Operator: "Exists", Effect: "NoSchedule", TolerationSeconds: sec(5)}}, 0, false},
		"of any effect":     {[]resourcev1.DeviceToleration{{Operator: "Exists", TolerationSeconds: sec(5)}}, 0, false},
	} {
		taint := noExecute("k", 0)
		when, evicts := endOf(&resourcev1.DeviceRequestAllocationResult{Tolerations: c.tolerations}, &taint)
		if evicts == c.stays || evicts && when.Sub(begin) != c.want {
			t.Errorf("%s: %v after %v, want %v", name, evicts, when.Sub(begin), c.want)
		}
	}
}

func TestCondition(t *testing.T) {
	for _, c := range []struct {
		effect   resourcev1.DeviceTaintEffect
		progress progress
		want     string
	}{
		{"NoExecute", progress{}, "False NotStarted "},
		{"NoExecute", progress{pods: 1, namespaces: 1}, "True PodsPendingEviction 1 pod needs to be evicted in 1 namespace."},
		{"NoExecute", progress{pods: 3, namespaces: 2, evicted: 1},
			"True PodsPendingEviction 3 pods need to be evicted in 2 different namespaces. 1 pod evicted since starting the controller."},
		{"NoExecute", progress{evicted: 2}, "False Completed 2 pods evicted since starting the controller."},
		{"NoSchedule", progress{}, "False OtherEffect Eviction only happens for the NoExecute effect."},
		{"None", progress{pods: 1, published: 2, granted: 1}, "False NoEffect 2 published devices selected. 1 allocated device selected. " +
			"1 pod would be evicted in 0 different namespaces if the effect was NoExecute. " +
			"This information will not be updated again. Recreate the DeviceTaintRule to trigger an update."},
	} {
		got := condition(newRule("r", nil, c.effect, 0), c.progress)
		if diff := cmp.Diff(c.want, string(got.Status)+" "+got.Reason+" "+got.Message); diff != "" {
			t.Error(diff)
		}
		if got.Type != "EvictionInProgress" || got.ObservedGeneration != 1 {
			t.Errorf("%v", got)
		}
	}
}
