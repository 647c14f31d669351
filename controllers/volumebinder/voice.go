package volumebinder

import (
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
)

// voice reports events. It says the same of an object once only: passes come as often as anything near it changes.
type voice struct {
	events record.EventRecorder
	mu     sync.Mutex
	said   map[reconcile.Key]utterance // the last one; a volume's key has no namespace
}

type utterance struct {
	about types.UID
	event event
}

// say reports the event, unless it is what was said last.
func (v *voice) say(o interface {
	metav1.Object
	runtime.Object
}, e event) {
	if e == (event{}) {
		return
	}
	key, now := reconcile.KeyOf(o), utterance{o.GetUID(), e}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.said[key] == now {
		return
	}
	v.said[key] = now
	v.events.Event(o, e.kind, e.reason, e.message)
}

// settled forgets what was said of an object that is gone, or of which there is nothing to say.
func (v *voice) settled(key reconcile.Key) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.said, key)
}
