package pods

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/agent/runtime/podconfig"
)

// mirrors are the API's objects that show static pods, by their own uid.
type mirrors struct {
	all   map[types.UID]*corev1.Pod
	known bool // all were seen
}

// isMirror reports whether pod only shows a static pod, whose uid it names.
func isMirror(pod *corev1.Pod) (static types.UID, ok bool) {
	uid, ok := pod.Annotations[corev1.MirrorPodAnnotationKey]
	return types.UID(uid), ok
}

// StartStatic runs a pod that the API does not know. Its uid names its content.
func (m *Manager) StartStatic(ctx context.Context, pod *corev1.Pod) {
	m.deliver(ctx, pod, false)
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, mirror := range m.mirrors.all {
		if w := m.shownBy(mirror); w != nil && w.uid == pod.UID {
			w.setMirror(mirror)
		}
	}
}

// EndStatic ends a static pod and takes it off the node.
func (m *Manager) EndStatic(ctx context.Context, pod *corev1.Pod) { m.deliver(ctx, pod, true) }

// Runs reports whether something of the pod is left.
func (m *Manager) Runs(uid types.UID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.workers[uid] != nil
}

// Mirrors lists this node's mirror pods; known is false before the API has told of all.
func (m *Manager) Mirrors() (list []*corev1.Pod, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, mirror := range m.mirrors.all {
		list = append(list, mirror)
	}
	return list, m.mirrors.known
}

// mirrored takes in a mirror pod: it changes nothing of the static pod, but remembers its status across restarts of the agent.
func (m *Manager) mirrored(mirror *corev1.Pod, gone bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if gone {
		delete(m.mirrors.all, mirror.UID)
	} else {
		m.mirrors.all[mirror.UID] = mirror
	}
	if w := m.shownBy(mirror); w != nil {
		if gone {
			mirror = nil
		}
		w.setMirror(mirror)
	}
}

// shownBy is the worker of the static pod that mirror shows: users can make pods that look like mirrors. m.mu is held.
func (m *Manager) shownBy(mirror *corev1.Pod) *worker {
	uid, _ := isMirror(mirror)
	w := m.workers[uid]
	if w == nil {
		return nil
	}
	if pod, _ := w.latest(); !podconfig.IsStatic(pod) || pod.Namespace != mirror.Namespace || pod.Name != mirror.Name {
		return nil
	}
	return w
}

// setMirror of a static pod; nil if it has none any more. A status that was set meanwhile goes to the new one.
func (w *worker) setMirror(mirror *corev1.Pod) {
	w.mu.Lock()
	old := w.mirror
	w.mirror = mirror
	if mirror != nil && podconfig.IsStatic(w.pod) {
		pod := *w.pod
		pod.Status = mirror.Status
		w.pod = &pod
	}
	w.mu.Unlock()
	if old != nil && (mirror == nil || old.UID != mirror.UID) {
		w.m.Status.Forget(old.UID)
	}
	w.poke()
}

// publish tells the API of the pod's status; a static pod's is that of its mirror, if there is one.
func (w *worker) publish(pod *corev1.Pod, s corev1.PodStatus) {
	w.m.Listener.PodChanged(pod.UID, &s)
	if !podconfig.IsStatic(pod) {
		w.m.Status.Set(pod, s)
		return
	}
	w.mu.Lock()
	mirror := w.mirror
	w.mu.Unlock()
	if mirror != nil && mirror.DeletionTimestamp == nil {
		s := *s.DeepCopy()
		s.ObservedGeneration = mirror.Generation
		for i := range s.Conditions {
			s.Conditions[i].ObservedGeneration = mirror.Generation
		}
		w.m.Status.Set(mirror, s)
	}
}

// forget drops what is to be told of the pod.
func (w *worker) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.mirror != nil {
		w.m.Status.Forget(w.mirror.UID)
	}
	w.m.Status.Forget(w.uid)
}
