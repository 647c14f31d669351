package scheduler

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"

	"github.com/setpoint-io/setpoint/controllers/scheduler/plugin"
	"github.com/setpoint-io/setpoint/controllers/scheduler/podkey"
)

// BenchmarkVariety places one pod where 30 are on each node already; one of the oldest leaves for each that comes, so the world
// stays as full. The pods are of so many classes, each with a Service to spread over.
func BenchmarkVariety(b *testing.B) {
	shapes := map[string]func(i int, pod *corev1.Pod){
		"same": func(int, *corev1.Pod) {},
		"requests": func(i int, pod *corev1.Pod) {
			pod.Spec.Containers[0].Resources.Requests = resources("cpu", fmt.Sprint(100+i, "m"))
		},
		"apart": func(i int, pod *corev1.Pod) {
			pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
				PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 100, PodAffinityTerm: corev1.PodAffinityTerm{
					TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: pod.Labels},
				}}},
			}}
		},
	}
	for _, c := range []struct {
		nodes, classes int
		shape          string
	}{{100, 1, "same"}, {1000, 1, "same"}, {1000, 1000, "same"}, {5000, 1, "same"}, {5000, 1000, "same"}, {5000, 1000, "requests"}, {5000, 300, "apart"}} {
		b.Run(fmt.Sprintf("%d-nodes/%d-classes-%s", c.nodes, c.classes, c.shape), func(b *testing.B) {
			world, placed := newBench(nodesNamed(c.nodes)...), []*plugin.Pod{}
			place := func(serial int) {
				pod := testPod(fmt.Sprint("p", serial), "100m", "100Mi")
				pod.Labels = map[string]string{"app": fmt.Sprint("app-", serial%c.classes), "tier": "web"}
				shapes[c.shape](serial%c.classes, pod)
				p := plugin.NewPod(pod)
				key, spread := podkey.Of(pod), labels.SelectorFromSet(pod.Labels)
				node, err := world.engine.place(p, key, spread)
				if err != nil {
					b.Fatal(err)
				}
				world.assume(p, node)
				placed = append(placed, p)
			}
			serial := 0
			for ; serial < 30*c.nodes; serial++ {
				pod := testPod(fmt.Sprint("p", serial), "100m", "100Mi")
				pod.Labels = map[string]string{"app": fmt.Sprint("app-", serial%c.classes), "tier": "web"}
				shapes[c.shape](serial%c.classes, pod)
				p := plugin.NewPod(pod)
				world.assume(p, world.nodes[serial%c.nodes])
				placed = append(placed, p)
			}
			for range 2 * c.classes {
				place(serial)
				serial++
			}
			b.ResetTimer()
			for b.Loop() {
				world.removePod(placed[0].UID)
				placed = placed[1:]
				place(serial)
				serial++
			}
		})
	}
}

// BenchmarkUnschedulable tries pods that fit nowhere, while one place after the other becomes free for a moment.
func BenchmarkUnschedulable(b *testing.B) {
	for _, c := range []struct{ nodes, classes int }{{100, 1}, {100, 400}, {1000, 1000}} {
		b.Run(fmt.Sprintf("%d-nodes/%d-classes", c.nodes, c.classes), func(b *testing.B) {
			world := newBench(nodesNamed(c.nodes)...)
			for i := range c.nodes {
				world.assume(plugin.NewPod(testPod(fmt.Sprint("full", i), "31900m", "")), world.nodes[i])
			}
			var pods []*plugin.Pod
			var keys []podkey.Key
			for i := range c.classes {
				pod := testPod(fmt.Sprint("p", i), "200m", "")
				pod.Labels = map[string]string{"app": fmt.Sprint("app-", i)}
				pods, keys = append(pods, plugin.NewPod(pod)), append(keys, podkey.Of(pod))
			}
			filler := plugin.NewPod(testPod("filler", "50m", ""))
			for i := 0; b.Loop(); i++ {
				if i%c.classes == 0 {
					world.assume(filler, world.nodes[i/c.classes%c.nodes])
				}
				if _, err := world.engine.place(pods[i%c.classes], keys[i%c.classes], labels.SelectorFromSet(pods[i%c.classes].Labels)); err == nil {
					b.Fatal("a pod fits")
				}
				if i%c.classes == 0 {
					world.removePod(filler.UID)
				}
			}
		})
	}
}

// BenchmarkFreed is one pod that leaves a full cluster of 100 nodes where 2,000 pods of 400 classes wait, until all that it wakes
// have been tried: one of them gets its place.
func BenchmarkFreed(b *testing.B) {
	client := fake.NewSimpleClientset()
	client.PrependReactor("*", "*", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, nil })
	s := newScheduler(Config{Client: client, Informers: informers.NewSharedInformerFactory(client, 0)})
	s.report.recorders = map[string]record.EventRecorder{corev1.DefaultSchedulerName: &record.FakeRecorder{}}
	for _, n := range nodesNamed(100) {
		s.nodeChanged(n)
	}
	var placed []*corev1.Pod
	for i := range 100 * 32 {
		placed = append(placed, bound(testPod(fmt.Sprint("old", i), "1", "1Gi"), fmt.Sprintf("node-%03d", i%100)))
		s.podChanged(placed[i])
	}
	serial := 0
	wait := func() {
		pod := testPod(fmt.Sprint("new", serial), "1", "1Gi")
		pod.Labels = map[string]string{"app": fmt.Sprint("app-", serial%400)}
		serial++
		s.podChanged(pod)
	}
	settle := func() {
		for {
			t, _ := s.queue.next(time.Now())
			if t.entry == nil {
				break
			}
			s.schedule(b.Context(), t)
		}
		s.binder.wait()
	}
	for range 2000 {
		wait()
	}
	settle()
	for b.Loop() {
		s.podGone(placed[0])
		placed = placed[1:]
		settle()
		client.ClearActions()
		wait()
		for _, p := range s.cache.pods { // what was bound now runs
			if p.assumed {
				placed = append(placed, bound(p.pod.Pod, p.node.Name))
				s.podChanged(placed[len(placed)-1])
			}
		}
	}
	s.report.queue.ShutDown()
}
