package scheduler

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
)

// TestJudgeOfDevices: what a pod is told that waits for devices, and the smallest change that would help.
func TestJudgeOfDevices(t *testing.T) {
	elsewhere := deviceClaim("gpus", "b", "node-9")
	for name, c := range map[string]struct {
		pod             *corev1.Pod
		objects         []runtime.Object
		refusal, reason string
		hint            string
	}{
		"no claim":       {usingDevices(testPod("a", "", ""), "gpus"), nil, `could not find ResourceClaim "default/gpus"`, "", ""},
		"no class":       {usingDevices(testPod("a", "", ""), "gpus"), []runtime.Object{deviceClaim("gpus", "", "")}, "request gpu: device class gpu does not exist", "", ""},
		"no devices":     {usingDevices(testPod("a", "", ""), "gpus"), []runtime.Object{deviceClaim("gpus", "", ""), deviceClass("gpu")}, "", "cannot allocate all claims", "It would fit on node-1 if there were free devices for gpus."},
		"elsewhere":      {usingDevices(testPod("a", "", ""), "gpus"), []runtime.Object{elsewhere}, "", "resourceclaim not available on the node", "It would fit on node-1 if the devices of gpus were there."},
		"extended, none": {wanting(testPod("a", "", ""), gpuResource, "1"), []runtime.Object{gpuClass()}, "", "cannot allocate all claims", "It would fit on node-1 if there were free devices for its extended resources."},
		"enough":         {wanting(testPod("a", "", ""), gpuResource, "1"), []runtime.Object{gpuClass(), gpusOn("node-1", 1)}, "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := informers.NewSharedInformerFactory(fake.NewSimpleClientset(), 0)
			add := func(err error) {
				if err != nil {
					t.Fatal(err)
				}
			}
			add(f.Core().V1().Nodes().Informer().GetStore().Add(testNode("node-1", "z", "2", "8Gi")))
			for _, o := range c.objects {
				switch o := o.(type) {
				case *resourcev1.ResourceClaim:
					add(f.Resource().V1().ResourceClaims().Informer().GetStore().Add(o))
				case *resourcev1.DeviceClass:
					add(f.Resource().V1().DeviceClasses().Informer().GetStore().Add(o))
				case *resourcev1.ResourceSlice:
					add(f.Resource().V1().ResourceSlices().Informer().GetStore().Add(o))
				}
			}
			j, err := NewJudge(Config{Informers: f}).Pod(c.pod)
			if err != nil {
				t.Fatal(err)
			}
			reason := ""
			for _, v := range j.Nodes {
				for _, r := range v.Rejections {
					reason += r.Plugin + ": " + r.Reasons[0]
				}
			}
			if c.reason != "" {
				c.reason = "DynamicResources: " + c.reason
			}
			if j.Refusal != c.refusal || reason != c.reason || j.Hint != c.hint {
				t.Errorf("refusal %q, reason %q, hint %q", j.Refusal, reason, j.Hint)
			}
		})
	}
}
