package pods

import (
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/agent/pods/podstest"
)

// heard is what a listener knows of the pods.
type heard struct {
	mu      sync.Mutex
	phases  map[types.UID]corev1.PodPhase
	changes int
}

func (h *heard) PodChanged(uid types.UID, now *corev1.PodStatus) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.changes++
	if h.phases == nil {
		h.phases = map[types.UID]corev1.PodPhase{}
	}
	if now != nil {
		h.phases[uid] = now.Phase
	}
}

func (h *heard) PodGone(uid types.UID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.phases, uid)
}

func (h *heard) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.changes
}

func (h *heard) of(uid types.UID) corev1.PodPhase {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.phases[uid]
}

// TestAListenerHearsOfPods: of what was found out, of another object, and of their end.
func TestAListenerHearsOfPods(t *testing.T) {
	inBubble(t, map[string]podstest.Program{"web": {}}, func(w *world) {
		p := newPod("p", "web")
		w.create(p)
		if got := w.heard.of(p.UID); got != corev1.PodRunning {
			t.Errorf("phase %q", got)
		}
		before := w.heard.count()
		w.relabel("now")
		w.settle()
		if w.heard.count() == before {
			t.Error("another object was not heard of")
		}
		w.delete("p", 1)
		w.settle()
		if got := w.heard.of(p.UID); got != "" || w.exists("p") {
			t.Errorf("after its end: %q", got)
		}
	})
}
