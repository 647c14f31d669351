package reconciletest

import (
	stdjson "encoding/json"
	"fmt"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
)

// RunPods plays scheduler and node agent once: places every unplaced pod on a
// node, makes it run, and lets terminating pods go.
func (w *World) RunPods(ready bool) {
	w.t.Helper()
	for _, p := range w.Pods(metav1.NamespaceAll) {
		if p.DeletionTimestamp != nil {
			w.RemovePod(&p)
			continue
		}
		Edit(w, &p, func(p *corev1.Pod) {
			if p.Spec.NodeName == "" {
				p.Spec.NodeName = "node-" + strconv.Itoa(len(p.Name)%3)
			}
			SetReady(p, ready)
		})
	}
}

// SetReady makes the pod run, ready or not.
func SetReady(p *corev1.Pod, ready bool) {
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	p.Status.Phase = corev1.PodRunning
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == status {
			return
		}
	}
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: status, LastTransitionTime: metav1.NewTime(time.Now())}}
}

// Put overwrites pods with new versions, uncounted: all of them before a controller writes again.
func (w *World) Put(pods ...*corev1.Pod) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range pods {
		if err := w.put(p); err != nil {
			w.t.Fatal(err)
		}
	}
}

// PutIfThere is Put of a pod that a controller may have removed meanwhile.
func (w *World) PutIfThere(p *corev1.Pod) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.put(p); err != nil && !apierrors.IsNotFound(err) {
		w.t.Fatal(err)
	}
}

func (w *World) put(p *corev1.Pod) error {
	p.ResourceVersion = strconv.Itoa(w.next())
	return w.Client.Tracker().Update(corev1.SchemeGroupVersion.WithResource("pods"), p, p.Namespace)
}

// RemovePod removes a pod at once, uncounted.
func (w *World) RemovePod(p *corev1.Pod) {
	w.t.Helper()
	w.mu.Lock()
	err := w.remove(corev1.SchemeGroupVersion.WithResource("pods"), p.Namespace, p.Name)
	w.mu.Unlock()
	if err != nil {
		w.t.Fatal(err)
	}
}

// Events keeps what controllers report; it is a record.EventRecorder.
type Events struct {
	mu   sync.Mutex
	list []string
}

// Event keeps one event as "type reason message".
func (e *Events) Event(_ runtime.Object, eventtype, reason, message string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.list = append(e.list, eventtype+" "+reason+" "+message)
}

// Eventf formats and keeps one event.
func (e *Events) Eventf(o runtime.Object, eventtype, reason, format string, args ...any) {
	e.Event(o, eventtype, reason, fmt.Sprintf(format, args...))
}

// AnnotatedEventf keeps one event without its annotations.
func (e *Events) AnnotatedEventf(o runtime.Object, _ map[string]string, eventtype, reason, format string, args ...any) {
	e.Eventf(o, eventtype, reason, format, args...)
}

// List returns the events since the last call.
func (e *Events) List() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	out := e.list
	e.list = nil
	return out
}

func json(o runtime.Object) ([]byte, error)               { return stdjson.Marshal(o) }
func unjson(body []byte, into runtime.Object) error       { return stdjson.Unmarshal(body, into) }
func mergePatch(was, patch []byte, _ any) ([]byte, error) { return jsonpatch.MergePatch(was, patch) }
