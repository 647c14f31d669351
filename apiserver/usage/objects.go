package usage

import (
	"context"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"github.com/setpoint-io/setpoint/apiserver/resource"
	"github.com/setpoint-io/setpoint/apiserver/rest"
	"github.com/setpoint-io/setpoint/apiserver/storage"
)

// Kinds are what the API serves of the meter.
func (m *Meter) Kinds() []rest.Computed {
	nodes := view{m, m.nodes, "nodemetrics", m.ofNode}
	pods := view{m, m.pods, "podmetrics", m.ofPod}
	return []rest.Computed{
		{Kind: nodeKind(), Get: nodes.get, List: nodes.list},
		{Kind: podKind(), Get: pods.get, List: pods.list},
	}
}

// view shows the metrics of the objects of a table.
type view struct {
	meter *Meter
	table *storage.Table
	// name is that in metrics-server's messages.
	name string
	of   func(resource.Object, time.Time) resource.Object // nil: there are none
}

func (v view) get(ctx context.Context, namespace, name string) (resource.Object, error) {
	cached, err := v.table.Get(ctx, namespace, name, "")
	if err != nil {
		return nil, err
	}
	v.meter.await(ctx)
	if found := v.of(cached.Object(), time.Now()); found != nil {
		return found, nil
	}
	if namespace != "" {
		name = namespace + "/" + name
	}
	return nil, apierrors.NewNotFound(metricsv1beta1.Resource(v.name), name)
}

// list is in the order of names, as that of the objects themselves.
func (v view) list(ctx context.Context, namespace string) ([]resource.Object, error) {
	v.meter.await(ctx)
	snapshot, err := v.table.Snapshot(ctx, "0")
	if err != nil {
		return nil, err
	}
	var all []resource.Object
	now := time.Now()
	for object, err := range snapshot.All(namespace) {
		if err != nil {
			return nil, err
		}
		if found := v.of(object, now); found != nil {
			all = append(all, found)
		}
	}
	return all, nil
}

func (m *Meter) ofNode(object resource.Object, now time.Time) resource.Object {
	m.mu.Lock()
	u := m.known[object.GetName()]
	m.mu.Unlock()
	if u == nil || u.uid != object.GetUID() {
		return nil
	}
	f := u.node.fresh(now)
	if f == nil {
		return nil
	}
	return &metricsv1beta1.NodeMetrics{
		ObjectMeta: metaOf(object, now), Timestamp: metav1.NewTime(f.at), Window: metav1.Duration{Duration: f.window}, Usage: f.list(),
	}
}

func (m *Meter) ofPod(object resource.Object, now time.Time) resource.Object {
	pod := object.(*corev1.Pod)
	if !running(pod) {
		return nil
	}
	tracks := m.tracksOf(pod)
	if !complete(tracks, pod) {
		return nil // a sum with a hole is too low
	}
	shown := &metricsv1beta1.PodMetrics{ObjectMeta: metaOf(pod, now)}
	for _, name := range slices.Sorted(maps.Keys(tracks)) {
		t := tracks[name]
		f := t.fresh(now)
		if f == nil {
			return nil
		}
		if shown.Timestamp.IsZero() || f.at.Before(shown.Timestamp.Time) {
			shown.Timestamp, shown.Window = metav1.NewTime(f.at), metav1.Duration{Duration: f.window}
		}
		shown.Containers = append(shown.Containers, metricsv1beta1.ContainerMetrics{Name: name, Usage: f.list()})
	}
	return shown
}

// tracksOf are those of a pod's containers, by what its own node said. They do not change.
func (m *Meter) tracksOf(pod *corev1.Pod) map[string]track {
	m.mu.Lock()
	defer m.mu.Unlock()
	if u := m.known[pod.Spec.NodeName]; u != nil {
		return u.pods[pod.UID]
	}
	return nil
}

// complete reports whether there is a track of each container that runs, and one at all.
func complete(tracks map[string]track, pod *corev1.Pod) bool {
	for i := range pod.Status.ContainerStatuses {
		s := &pod.Status.ContainerStatuses[i]
		if _, known := tracks[s.Name]; s.State.Running != nil && !known {
			return false
		}
	}
	return len(tracks) > 0
}

// metaOf has the labels by which the objects are selected. They were made now, as metrics-server says it.
func metaOf(object resource.Object, now time.Time) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: object.GetName(), Namespace: object.GetNamespace(), Labels: maps.Clone(object.GetLabels()), CreationTimestamp: metav1.NewTime(now),
	}
}

func (f *figure) list() corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU:    *apiresource.NewScaledQuantity(int64(f.nanocores), apiresource.Nano), // below coresLimit
		corev1.ResourceMemory: *apiresource.NewQuantity(int64(f.memory), apiresource.BinarySI),      // below memoryLimit
	}
}
