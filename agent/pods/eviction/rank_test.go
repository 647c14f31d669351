package eviction

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// requesting is a pod called by name, with one container "a" that requests these of memory and of the disk.
func requesting(name string, priority int32, memory, disk string) *corev1.Pod {
	requests := corev1.ResourceList{}
	for resourceName, text := range map[corev1.ResourceName]string{corev1.ResourceMemory: memory, corev1.ResourceEphemeralStorage: disk} {
		if text != "" {
			requests[resourceName] = resource.MustParse(text)
		}
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)},
		Spec: corev1.PodSpec{Priority: &priority, Containers: []corev1.Container{
			{Name: "a", Resources: corev1.ResourceRequirements{Requests: requests}},
		}},
	}
}

func TestWhoHasToGoFirst(t *testing.T) {
	layer := func(bytes, inodes int64) Usage { return Usage{Layers: map[string]Files{"a": {bytes, inodes}}} }
	volume := func(bytes int64) Usage { return Usage{Volumes: map[string]Files{"v": {bytes, 1}}} }
	one := Layout{}
	for _, c := range []struct {
		name   string
		signal Signal
		layout Layout
		pods   []*corev1.Pod
		live   map[types.UID]Live
		files  map[types.UID]Usage
		want   string
	}{
		{"who is above its requests, though of higher priority", MemoryAvailable, one,
			[]*corev1.Pod{requesting("within", 0, "100", ""), requesting("above", 9, "100", "")},
			map[types.UID]Live{"within": {MemoryBytes: 100}, "above": {MemoryBytes: 101}}, nil, "above within"},
		{"the least priority", MemoryAvailable, one,
			[]*corev1.Pod{requesting("high", 9, "", ""), requesting("low", 1, "", "")},
			map[types.UID]Live{"high": {MemoryBytes: 900}, "low": {MemoryBytes: 1}}, nil, "low high"},
		{"who is furthest above", MemoryAvailable, one,
			[]*corev1.Pod{requesting("most", 0, "500", ""), requesting("furthest", 0, "10", "")},
			map[types.UID]Live{"most": {MemoryBytes: 600}, "furthest": {MemoryBytes: 300}}, nil, "furthest most"},
		{"of whom nothing is known", MemoryAvailable, one,
			[]*corev1.Pod{requesting("above", 0, "", ""), requesting("unknown", 9, "", "")},
			map[types.UID]Live{"above": {MemoryBytes: 101}}, nil, "unknown above"},
		{"process ids: priority, then their number", PIDAvailable, one,
			[]*corev1.Pod{requesting("high", 9, "", ""), requesting("few", 0, "", ""), requesting("many", 0, "", "")},
			map[types.UID]Live{"high": {Processes: 99}, "few": {Processes: 1}, "many": {Processes: 50}}, nil, "many few high"},
		{"one disk: everything counts", ImageFsAvailable, one,
			[]*corev1.Pod{requesting("layer", 0, "", ""), requesting("volume", 0, "", ""), requesting("within", 0, "", "1Gi")},
			nil, map[types.UID]Usage{"layer": layer(10, 1), "volume": volume(20), "within": volume(1000)}, "volume layer within"},
		{"disk of images apart: layers count there", ImageFsAvailable, Layout{ImagesApart: true},
			[]*corev1.Pod{requesting("volume", 0, "", ""), requesting("layer", 0, "", "")},
			nil, map[types.UID]Usage{"layer": layer(10, 1), "volume": volume(20)}, "layer volume"},
		{"and volumes on the other one", NodeFsAvailable, Layout{ImagesApart: true},
			[]*corev1.Pod{requesting("layer", 0, "", ""), requesting("volume", 0, "", "")},
			nil, map[types.UID]Usage{"layer": layer(100, 1), "volume": volume(20)}, "volume layer"},
		{"unless layers are there too", NodeFsAvailable, Layout{ImagesApart: true, LayersWithPods: true},
			[]*corev1.Pod{requesting("volume", 0, "", ""), requesting("layer", 0, "", "")},
			nil, map[types.UID]Usage{"layer": layer(100, 1), "volume": volume(20)}, "layer volume"},
		{"files, not bytes", NodeFsInodesFree, one,
			[]*corev1.Pod{requesting("large", 0, "", ""), requesting("many", 0, "", "")},
			nil, map[types.UID]Usage{"large": layer(1000, 1), "many": layer(1, 1000)}, "many large"},
	} {
		k, _ := kindOf(c.signal)
		list := usage{live: c.live, files: c.files}.candidates(c.pods, c.signal, c.layout)
		rank(list, k.resource)
		var got []string
		for _, one := range list {
			got = append(got, one.pod.Name)
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("%s: %s, want %s", c.name, s, c.want)
		}
	}
}

func TestMessagesAreUpstreams(t *testing.T) {
	hundred := resource.MustParse("100Mi")
	whole := requesting("p", 0, "1Mi", "")
	whole.Spec.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("2Mi")}}
	for _, c := range []struct {
		name string
		t    Threshold
		seen Observations
		pod  *corev1.Pod
		u    usage
		want string
	}{
		{"memory", Threshold{Signal: MemoryAvailable, Value: Amount{Quantity: &hundred}}, Observations{MemoryAvailable: {1 << 30, 50 << 20}},
			requesting("p", 0, "1Mi", ""), usage{live: map[types.UID]Live{"p": {MemoryBytes: 3 << 20, Containers: map[string]int64{"a": 2 << 20}}}},
			"The node was low on resource: memory. Threshold quantity: 100Mi, available: 50Mi. " +
				"Container a was using 2Mi, request is 1Mi, has larger consumption of memory. "},
		{"memory of a pod as a whole", Threshold{Signal: MemoryAvailable, Value: Amount{Fraction: .5}}, Observations{MemoryAvailable: {1 << 30, 1024}},
			whole, usage{live: map[types.UID]Live{"p": {MemoryBytes: 3 << 20, Containers: map[string]int64{"a": 1 << 20}}}},
			"The node was low on resource: memory. Threshold quantity: 512Mi, available: 1Ki. " +
				"Pod p was using 3Mi, request is 2Mi, has larger consumption of memory. "},
		{"disk, layer and logs", Threshold{Signal: NodeFsAvailable, Value: Amount{Fraction: .5}}, Observations{NodeFsAvailable: {1 << 30, 1 << 20}},
			requesting("p", 0, "", ""), usage{files: map[types.UID]Usage{"p": {Layers: map[string]Files{"a": {1024, 1}}, Logs: map[string]Files{"a": {1024, 1}}}}},
			"The node was low on resource: ephemeral-storage. Threshold quantity: 512Mi, available: 1Mi. " +
				"Container a was using 2Ki, request is 0, has larger consumption of ephemeral-storage. "},
		{"process ids", Threshold{Signal: PIDAvailable, Value: Amount{Fraction: .5}}, Observations{PIDAvailable: {1000, 10}},
			requesting("p", 0, "", ""), usage{live: map[types.UID]Live{"p": {Processes: 900}}},
			"The node was low on resource: pids. Threshold quantity: 500, available: 10. "},
	} {
		if got := message(c.t, c.seen, c.pod, c.u); got != c.want {
			t.Errorf("%s:\n got %q\nwant %q", c.name, got, c.want)
		}
	}
}
