package simulated

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	corev1informers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// informers has one informer for all bound pods and one for our Nodes.
func (f *fleet) informers() informers.SharedInformerFactory {
	factory := informers.NewSharedInformerFactory(f.Client, 0)
	factory.InformerFor(&corev1.Pod{}, func(c kubernetes.Interface, _ time.Duration) cache.SharedIndexInformer {
		return corev1informers.NewFilteredPodInformer(
			c,
			metav1.NamespaceAll,
			0,
			cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc},
			func(o *metav1.ListOptions) {
				o.FieldSelector = fields.OneTermNotEqualSelector("spec.nodeName", "").String()
			},
		)
	})
	factory.InformerFor(&corev1.Node{}, func(c kubernetes.Interface, _ time.Duration) cache.SharedIndexInformer {
		return corev1informers.NewFilteredNodeInformer(c, 0, cache.Indexers{}, func(o *metav1.ListOptions) {
			o.LabelSelector = labels.Set{Label: labelValue(f.NamePrefix)}.String()
		})
	})
	return factory
}

// look has the fleet told of pods and nodes, from informers of its own or from those of somebody else. Stop ends what it has begun.
func (f *fleet) look(ctx context.Context) (synced []cache.DoneChecker, stop func(), err error) {
	factory, stop := f.Informers, func() {}
	if f.Informers == nil {
		factory = f.informers()
	}
	if err := f.read(factory); err != nil {
		return nil, stop, err
	}
	pods, nodes := factory.Core().V1().Pods().Informer(), factory.Core().V1().Nodes().Informer()
	ofPods, errPods := pods.AddEventHandler(f.podEvents())
	ofNodes, errNodes := nodes.AddEventHandler(f.nodeEvents())
	if err := errors.Join(errPods, errNodes); err != nil {
		return nil, stop, err
	}
	stop = func() { _, _ = pods.RemoveEventHandler(ofPods), nodes.RemoveEventHandler(ofNodes) }
	if f.Informers == nil {
		factory.StartWithContext(ctx)
		stop = factory.Shutdown
	}
	return []cache.DoneChecker{ofPods.HasSyncedChecker(), ofNodes.HasSyncedChecker()}, stop, nil
}

// read is from where the fleet reads.
func (f *fleet) read(factory informers.SharedInformerFactory) error {
	pods, nodes := factory.Core().V1().Pods(), factory.Core().V1().Nodes()
	f.pods, f.nodes, f.byNode = pods.Lister(), nodes.Lister(), pods.Informer().GetIndexer()
	return pods.Informer().AddIndexers(cache.Indexers{nodeIndex: nodeOf})
}

// nodeIndex files pods under their nodes.
const nodeIndex = "simulated/node"

func nodeOf(obj any) ([]string, error) {
	if pod, ok := obj.(*corev1.Pod); ok {
		return []string{pod.Spec.NodeName}, nil
	}
	return nil, nil
}

// needsWork is false for a pod this package has nothing to say about any more.
func (f *fleet) needsWork(pod *corev1.Pod) bool {
	if pod.DeletionTimestamp != nil {
		return true
	}
	switch pod.Status.Phase {
	case corev1.PodSucceeded, corev1.PodFailed:
		return false
	case corev1.PodRunning:
		if Crashed(pod) {
			return false
		}
		_, end := f.ends(pod)
		return end || f.untold(pod) || f.readinessMoved(pod) || f.resizes(pod) || f.starts(pod)
	default:
		return true
	}
}

// sync brings one pod to Running, or to its end, or confirms its deletion.
func (f *fleet) sync(ctx context.Context, key types.NamespacedName) error {
	pod, err := f.pods.Pods(key.Namespace).Get(key.Name)
	if err != nil || !f.needsWork(pod) || f.Outage.Off(pod.Spec.NodeName) {
		return nil // gone, or a newer event already settled it
	}
	if pod.DeletionTimestamp != nil {
		return f.confirmDeletion(ctx, pod)
	}
	if f.awaitsRange(pod.Spec.NodeName, f.Clock.Now()) {
		f.queue.AddAfter(key, rangeLook)
		return nil
	}
	if f.awaits(key, pod, f.Clock.Now()) {
		return nil
	}
	patch, err := f.nextPatch(key, pod, f.Clock.Now())
	if err != nil || patch == nil {
		return err
	}
	_, err = f.Client.CoreV1().
		Pods(pod.Namespace).
		Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	return ignoreGone(err)
}

// awaitsRange is true for a new node whose pod CIDRs a controller will set.
func (f *fleet) awaitsRange(name string, now time.Time) bool {
	if !f.PodCIDRs {
		return false
	}
	node, err := f.nodes.Get(name)
	return err != nil || node.Spec.PodCIDR == "" && now.Sub(node.CreationTimestamp.Time) < rangeWait
}

// nextPatch is the pod's next status; nil while it runs, with a look when it ends.
func (f *fleet) nextPatch(key types.NamespacedName, pod *corev1.Pod, now time.Time) ([]byte, error) {
	end, does := f.ends(pod)
	if !does || pod.Status.Phase != corev1.PodRunning || f.untold(pod) || f.readinessMoved(pod) || f.resizes(pod) ||
		f.starts(pod) {
		return f.runningPatch(pod, metav1.NewTime(now))
	}
	if wait := end.Sub(now); wait > 0 {
		f.queue.AddAfter(key, wait)
		return nil, nil
	}
	return f.finishedPatch(pod, metav1.NewTime(now))
}

func (f *fleet) confirmDeletion(ctx context.Context, pod *corev1.Pod) error {
	var now int64
	opts := metav1.DeleteOptions{GracePeriodSeconds: &now, Preconditions: &metav1.Preconditions{UID: &pod.UID}}
	return ignoreGone(f.Client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, opts))
}

// ignoreGone accepts answers that mean "another pod has the name by now", or "the pod has changed": see asRead.
func ignoreGone(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// asRead has a patch be refused unless the pod is the one that was read, and as it was read: the cache may be older than a crash, which
// the patch would undo. The event of the newer version is on its way, and the pod is looked at again.
func asRead(pod *corev1.Pod) map[string]any {
	return map[string]any{"uid": pod.UID, "resourceVersion": pod.ResourceVersion}
}

func (f *fleet) runningPatch(pod *corev1.Pod, now metav1.Time) ([]byte, error) {
	status := f.running(pod, now)
	shown, waited := conditionOf(pod, corev1.PodReady), conditionOf(pod, corev1.PodResizePending) != nil
	if len(pod.Spec.ReadinessGates) == 0 && (shown == nil || shown.Reason == "") && !waited {
		return json.Marshal(map[string]any{"metadata": asRead(pod), "status": status})
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&status)
	if err != nil {
		return nil, err
	}
	conditions := fields["conditions"].([]any)
	waits := false
	for _, c := range conditions {
		c := c.(map[string]any)
		waits = waits || c["type"] == string(corev1.PodResizePending)
		if c["reason"] == nil {
			c["reason"], c["message"] = nil, nil // why the pod was not ready is no longer so
		}
	}
	if waited && !waits {
		fields["conditions"] = append(conditions, map[string]any{"$patch": "delete", "type": corev1.PodResizePending})
	}
	return json.Marshal(map[string]any{"metadata": asRead(pod), "status": fields})
}

// running is the whole status of a healthy pod.
func (f *fleet) running(pod *corev1.Pod, now metav1.Time) corev1.PodStatus {
	started := pod.Status.StartTime
	if started == nil {
		started = &now
	}
	ips, host := f.podIPs(pod), f.hostIP(pod.Spec.NodeName)
	s := corev1.PodStatus{
		ObservedGeneration:    pod.Generation,
		Phase:                 corev1.PodRunning,
		Conditions:            f.conditions(pod, now),
		HostIP:                host,
		HostIPs:               []corev1.HostIP{{IP: host}},
		PodIP:                 ips[0].IP,
		PodIPs:                ips,
		StartTime:             started,
		InitContainerStatuses: initStatuses(pod, now),
		ContainerStatuses:     containerStatuses(pod, now),
	}
	given, pending := f.allocate(pod)
	tellResources(&s, given, pending, now)
	return s
}

// podIPs come from the node's pod CIDRs when a controller has set them by now. A pod has the same number in both.
func (f *fleet) podIPs(pod *corev1.Pod) []corev1.PodIP {
	if pod.Spec.HostNetwork {
		return []corev1.PodIP{{IP: f.hostIP(pod.Spec.NodeName)}}
	}
	var spec corev1.NodeSpec
	if node, err := f.nodes.Get(pod.Spec.NodeName); err == nil {
		spec = node.Spec
	}
	ips := []corev1.PodIP{{IP: f.ips.assign(pod.Spec.NodeName, pod.UID, spec.PodCIDR, f.names[pod.Spec.NodeName])}}
	if len(spec.PodCIDRs) > 1 {
		ips = append(ips, corev1.PodIP{IP: second(spec.PodCIDR, spec.PodCIDRs[1], ips[0].IP)})
	}
	return ips
}

func (f *fleet) conditions(pod *corev1.Pod, now metav1.Time) []corev1.PodCondition {
	var out []corev1.PodCondition
	for _, t := range []corev1.PodConditionType{corev1.PodReadyToStartContainers, corev1.PodInitialized, corev1.PodReady,
		corev1.ContainersReady, corev1.PodScheduled} {
		c := corev1.PodCondition{Type: t, Status: corev1.ConditionTrue}
		if t == corev1.PodReady {
			c = ready(pod)
		}
		c.LastTransitionTime, c.ObservedGeneration = now, pod.Generation
		for _, old := range pod.Status.Conditions {
			if old.Type == t && old.Status == c.Status {
				c.LastTransitionTime = old.LastTransitionTime
			}
		}
		out = append(out, c)
	}
	return out
}

func containerStatuses(pod *corev1.Pod, now metav1.Time) []corev1.ContainerStatus {
	yes := true
	var out []corev1.ContainerStatus
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		restarts, last := former(pod, c.Name)
		out = append(out, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, ImageID: c.Image, Ready: true, Started: &yes, RestartCount: restarts, LastTerminationState: last,
			ContainerID: containerID(pod, c.Name),
			State:       corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: startedAt(pod, c.Name, now)}},
		})
	}
	return out
}

func initStatuses(pod *corev1.Pod, now metav1.Time) []corev1.ContainerStatus {
	var out []corev1.ContainerStatus
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		started := c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
		s := corev1.ContainerStatus{
			Name:        c.Name,
			Image:       c.Image,
			ImageID:     c.Image,
			Ready:       true,
			Started:     &started,
			ContainerID: containerID(pod, c.Name),
		}
		if started {
			s.State.Running = &corev1.ContainerStateRunning{StartedAt: now}
		} else {
			s.State.Terminated = &corev1.ContainerStateTerminated{Reason: "Completed", StartedAt: now, FinishedAt: now, ContainerID: s.ContainerID}
		}
		out = append(out, s)
	}
	return out
}

func containerID(pod *corev1.Pod, name string) string {
	return "simulated://" + string(pod.UID) + "-" + name
}

// startedAt keeps the time of a container that is already running.
func startedAt(pod *corev1.Pod, name string, now metav1.Time) metav1.Time {
	for i := range pod.Status.ContainerStatuses {
		if s := &pod.Status.ContainerStatuses[i]; s.Name == name && s.State.Running != nil {
			return s.State.Running.StartedAt
		}
	}
	return now
}
