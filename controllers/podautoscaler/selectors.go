package podautoscaler

import (
	"errors"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
)

// ambiguousLimit is how many autoscalers of the same pods the message names; upstream's.
const ambiguousLimit = 2

// selectorFault is why the pods of a target are not measured.
type selectorFault struct {
	event     event // none if the pods could not be read
	condition note
	err       error
}

func (f selectorFault) with(reason string) *selectorFault {
	f.event = event{f.event.reason, f.err.Error()}
	f.condition.reason = reason
	if f.condition.message == "" {
		f.condition.message = f.err.Error()
	}
	return &f
}

// memory is what a term keeps of each autoscaler.
type memory struct {
	mu        sync.Mutex
	histories map[reconcile.Key]history
	selectors map[string]map[reconcile.Key]labels.Selector // by namespace
}

func newMemory() *memory {
	return &memory{histories: map[reconcile.Key]history{}, selectors: map[string]map[reconcile.Key]labels.Selector{}}
}

func (m *memory) history(key reconcile.Key) history {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.histories[key]
}

func (m *memory) keep(key reconcile.Key, h history) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.histories[key] = h
}

func (m *memory) forget(key reconcile.Key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.histories, key)
	delete(m.selectors[key.Namespace], key)
	if len(m.selectors[key.Namespace]) == 0 {
		delete(m.selectors, key.Namespace)
	}
}

// choosing notes the selector of an autoscaler, and names those that choose one of the pods.
func (m *memory) choosing(key reconcile.Key, selector labels.Selector, pods []*corev1.Pod) (found []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.selectors[key.Namespace] == nil {
		m.selectors[key.Namespace] = map[reconcile.Key]labels.Selector{}
	}
	m.selectors[key.Namespace][key] = selector
	for other, s := range m.selectors[key.Namespace] {
		if len(found) < ambiguousLimit && choosesAny(s, pods) {
			found = append(found, fmt.Sprintf("{%s %s}", other.Name, other.Namespace))
		}
	}
	return found
}

func choosesAny(s labels.Selector, pods []*corev1.Pod) bool {
	for _, pod := range pods {
		if s.Matches(labels.Set(pod.Labels)) {
			return true
		}
	}
	return false
}

// podsOf are the pods that a scale's selector chooses, if no other autoscaler's does.
func (c *controller) podsOf(key reconcile.Key, text string) ([]*corev1.Pod, labels.Selector, *selectorFault) {
	if text == "" {
		f := selectorFault{event: event{reason: "SelectorRequired"}, err: errors.New("selector is required")}
		f.condition.message = "the HPA target's scale is missing a selector"
		return nil, nil, f.with("InvalidSelector")
	}
	selector, err := labels.Parse(text)
	if err != nil {
		err = fmt.Errorf("couldn't convert selector into a corresponding internal selector object: %w", err)
		return nil, nil, selectorFault{event: event{reason: "InvalidSelector"}, err: err}.with("InvalidSelector")
	}
	pods, err := c.pods.List(key.Namespace, selector)
	if err != nil {
		return nil, nil, &selectorFault{err: err}
	}
	if by := c.memory.choosing(key, selector, pods); len(by) > 1 {
		err := fmt.Errorf("pods by selector %v are controlled by more than one HPA (e.g. %v)", text, by)
		return nil, nil, selectorFault{event: event{reason: "AmbiguousSelector"}, err: err}.with("AmbiguousSelector")
	}
	return pods, selector, nil
}
