package usage

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

var now = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func pod(name, node string, containers ...string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name), Labels: map[string]string{"app": name}}}
	p.Spec.NodeName, p.Status.Phase = node, corev1.PodRunning
	for _, c := range containers {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: c})
	}
	return p
}

// used is a container that has spent some seconds of CPU and holds some memory.
func used(name string, at time.Time, seconds, memory uint64) stats.ContainerStats {
	spent := seconds * nanos
	return stats.ContainerStats{
		Name: name,
		CPU:  &stats.CPUStats{Time: metav1.NewTime(at), UsageCoreNanoSeconds: &spent}, Memory: &stats.MemoryStats{WorkingSetBytes: &memory},
	}
}

func said(node string, pods ...stats.PodStats) *stats.Summary {
	s := &stats.Summary{Node: stats.NodeStats{NodeName: node}, Pods: pods}
	c := used("", now, 1, 1)
	s.Node.CPU, s.Node.Memory = c.CPU, c.Memory
	return s
}

func saidOf(p *corev1.Pod, containers ...stats.ContainerStats) stats.PodStats {
	return stats.PodStats{PodRef: stats.PodReference{Namespace: p.Namespace, Name: p.Name, UID: string(p.UID)}, Containers: containers}
}

func TestAcceptedPods(t *testing.T) {
	a, elsewhere := pod("a", "n1", "c", "d"), pod("elsewhere", "n2", "c")
	static := pod("static", "n1", "c")
	static.Annotations = map[string]string{staticPodAnnotation: "hash"}
	another := saidOf(a, used("c", now, 1, 1))
	another.PodRef.UID = "uid-of-its-predecessor"
	hashed := saidOf(static, used("c", now, 1, 1))
	hashed.PodRef.UID = "hash"
	change := func(edit func(*stats.ContainerStats)) stats.PodStats {
		c := used("c", now, 1, 1)
		edit(&c)
		return saidOf(a, c, used("d", now, 1, 1))
	}
	for name, c := range map[string]struct {
		pods []stats.PodStats
		want []types.UID
	}{
		"nothing":               {nil, nil},
		"its own":               {[]stats.PodStats{saidOf(a, used("c", now, 1, 1), used("d", now, 1, 1))}, []types.UID{a.UID}},
		"a static pod":          {[]stats.PodStats{hashed}, []types.UID{static.UID}},
		"another node's":        {[]stats.PodStats{saidOf(elsewhere, used("c", now, 1, 1))}, nil},
		"of another uid":        {[]stats.PodStats{another}, nil},
		"no containers":         {[]stats.PodStats{saidOf(a)}, nil},
		"an unknown container":  {[]stats.PodStats{saidOf(a, used("c", now, 1, 1), used("x", now, 1, 1))}, nil},
		"a container twice":     {[]stats.PodStats{saidOf(a, used("c", now, 1, 1), used("c", now, 1, 1))}, nil},
		"twice, the first":      {[]stats.PodStats{change(func(c *stats.ContainerStats) { c.CPU = nil }), saidOf(a, used("c", now, 1, 1))}, nil},
		"no CPU":                {[]stats.PodStats{change(func(c *stats.ContainerStats) { c.CPU = nil })}, nil},
		"CPU of nothing":        {[]stats.PodStats{change(func(c *stats.ContainerStats) { c.CPU.UsageCoreNanoSeconds = nil })}, nil},
		"no memory":             {[]stats.PodStats{change(func(c *stats.ContainerStats) { c.Memory = nil })}, nil},
		"memory of nothing":     {[]stats.PodStats{change(func(c *stats.ContainerStats) { c.Memory.WorkingSetBytes = nil })}, nil},
		"too much memory":       {[]stats.PodStats{change(func(c *stats.ContainerStats) { *c.Memory.WorkingSetBytes = memoryLimit + 1 })}, nil},
		"too much CPU":          {[]stats.PodStats{change(func(c *stats.ContainerStats) { *c.CPU.UsageCoreNanoSeconds = nanosecondsMax + 1 })}, nil},
		"old":                   {[]stats.PodStats{change(func(c *stats.ContainerStats) { c.CPU.Time = metav1.NewTime(now.Add(-clockSkewLimit - 1)) })}, nil},
		"of the future":         {[]stats.PodStats{change(func(c *stats.ContainerStats) { c.CPU.Time = metav1.NewTime(now.Add(clockSkewLimit + 1)) })}, nil},
		"of no time":            {[]stats.PodStats{change(func(c *stats.ContainerStats) { c.CPU.Time = metav1.Time{} })}, nil},
		"old, but not too much": {[]stats.PodStats{change(func(c *stats.ContainerStats) { c.CPU.Time = metav1.NewTime(now.Add(-clockSkewLimit)) })}, []types.UID{a.UID}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := accept(said("n1", c.pods...), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}, []*corev1.Pod{a, static}, now)
			if err != nil || got.node == nil {
				t.Fatalf("%v, node %v", err, got.node)
			}
			if diff := cmp.Diff(c.want, slices.Sorted(maps.Keys(got.pods))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAnswersThatAreNotTaken(t *testing.T) {
	n1 := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	if _, err := accept(said("n2"), n1, nil, now); !errors.Is(err, errAnotherNode) {
		t.Errorf("another node's: %v", err)
	}
	var containers []stats.ContainerStats
	for i := range containersLimit + 1 {
		containers = append(containers, used(fmt.Sprint(i), now, 1, 1))
	}
	p := pod("a", "n1", "c")
	if _, err := accept(said("n1", saidOf(p, containers...)), n1, []*corev1.Pod{p}, now); !errors.Is(err, errTooManyContainers) {
		t.Errorf("too many containers: %v", err)
	}
	if _, err := accept(said("n1", make([]stats.PodStats, containersLimit+1)...), n1, nil, now); !errors.Is(err, errTooManyContainers) {
		t.Errorf("too many pods: %v", err)
	}
}
