package daemonset

import (
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/controllers/reconcile/podstate"
)

// burst is the largest number of pods created, and deleted, in one pass.
const burst = 250

// observed is the world around one DaemonSet.
type observed struct {
	nodes []*corev1.Node
	// pods are controlled by the DaemonSet and match its selector.
	pods []*corev1.Pod
	// hash names the present template.
	hash string
	// settled is false while the cache lags behind our own creations.
	settled bool
	// deleting are pods whose deletion we asked for and do not see yet.
	deleting map[types.UID]bool
	// wait is how long failed pods of a node have to stay; nil means not at all.
	wait func(node string) time.Duration
}

// todo is what one pass does.
type todo struct {
	create []string // names of nodes
	remove []*corev1.Pod
	// ended are those to be removed because they have failed or succeeded.
	ended  map[types.UID]bool
	status appsv1.DaemonSetStatus
	// again is when time alone changes the plan; 0 for never.
	again time.Duration
}

// pass is the making of one plan.
type pass struct {
	ds       *appsv1.DaemonSet
	seen     observed
	now      time.Time
	minReady time.Duration
	verdicts map[string]verdict // of nodes that exist
	pods     map[string][]*corev1.Pod
	todo     todo
}

// plan decides what the next step is. It is pure.
func plan(ds *appsv1.DaemonSet, seen observed, now time.Time) todo {
	p := newPass(ds, seen, now)
	p.todo.status = p.status()
	if ds.DeletionTimestamp != nil || !seen.settled {
		return p.todo
	}
	for _, node := range seen.nodes {
		p.manage(node.Name)
	}
	p.removeStranded()
	if len(p.todo.create) == 0 && len(p.todo.remove) == 0 {
		p.rollout()
	}
	p.todo.create = p.todo.create[:min(len(p.todo.create), burst)]
	p.todo.remove = p.todo.remove[:min(len(p.todo.remove), burst)]
	return p.todo
}

func newPass(ds *appsv1.DaemonSet, seen observed, now time.Time) *pass {
	p := &pass{
		ds: ds, seen: seen, now: now, minReady: time.Duration(ds.Spec.MinReadySeconds) * time.Second,
		verdicts: map[string]verdict{}, pods: map[string][]*corev1.Pod{}, todo: todo{ended: map[types.UID]bool{}},
	}
	fit := fitOf(ds)
	for _, node := range seen.nodes {
		p.verdicts[node.Name] = fit.of(node)
	}
	for _, pod := range seen.pods {
		// One that has ended and is being deleted waits for its finalizers only.
		ended := podstate.Finished(pod) && pod.DeletionTimestamp != nil
		if node := nodeOf(pod); node != "" && !ended {
			p.pods[node] = append(p.pods[node], pod)
		}
	}
	for _, pods := range p.pods {
		sortPods(pods)
	}
	return p
}

// dying tells whether a pod was asked to stop.
func (p *pass) dying(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp != nil || p.seen.deleting[pod.UID]
}

// available tells whether a pod has been ready for long enough, and asks to come
// back when it will have.
func (p *pass) available(pod *corev1.Pod) bool {
	wait, ready := podstate.AvailableIn(pod, p.minReady, p.now)
	if ready && wait > 0 {
		p.comeBack(wait)
	}
	return ready && wait == 0
}

func (p *pass) comeBack(wait time.Duration) {
	if p.todo.again == 0 || wait < p.todo.again {
		p.todo.again = wait
	}
}

// manage gives a node the pods that it should have, whatever their template.
func (p *pass) manage(node string) {
	pods, verdict := p.pods[node], p.verdicts[node]
	switch {
	case verdict.run && len(pods) == 0:
		p.todo.create = append(p.todo.create, node)
	case verdict.keep:
		p.tend(node, pods, verdict.run)
	default:
		p.todo.remove = append(p.todo.remove, slices.DeleteFunc(slices.Clone(pods), p.dying)...)
	}
}

// tend looks after the pods of a node that may have one: those that have ended and
// those that are too many go.
func (p *pass) tend(node string, pods []*corev1.Pod, run bool) {
	living, waits := p.clearEnded(node, pods)
	if !p.surges() {
		if len(living) > 1 {
			p.todo.remove = append(p.todo.remove, living[1:]...)
		}
		return
	}
	// Upstream also creates one beside a failed pod that has to wait, and so never
	// slows down on a node that refuses every pod.
	if len(living) == 0 && run && !waits {
		p.todo.create = append(p.todo.create, node)
	}
	if len(living) > 1 {
		p.prune(living)
	}
}

// clearEnded removes the pods that have ended; waits tells that one of them has
// to stay for now, because pods of this node failed before.
func (p *pass) clearEnded(node string, pods []*corev1.Pod) (living []*corev1.Pod, waits bool) {
	for _, pod := range pods {
		switch {
		case p.dying(pod):
		case pod.Status.Phase == corev1.PodFailed:
			if wait := p.wait(node); wait > 0 {
				p.comeBack(wait)
				waits = true
				continue
			}
			p.removeEnded(pod)
		case pod.Status.Phase == corev1.PodSucceeded:
			p.removeEnded(pod)
		default:
			living = append(living, pod)
		}
	}
	return living, waits
}

func (p *pass) removeEnded(pod *corev1.Pod) {
	p.todo.ended[pod.UID] = true
	p.todo.remove = append(p.todo.remove, pod)
}

func (p *pass) wait(node string) time.Duration {
	if p.seen.wait == nil {
		return 0
	}
	return p.seen.wait(node)
}

// prune leaves an old and a new pod while the old one is ready and the new one not
// yet available, and otherwise one.
func (p *pass) prune(living []*corev1.Pod) {
	var fresh, old *corev1.Pod
	for _, pod := range living {
		switch isCurrent := current(p.ds, p.seen.hash, pod); {
		case isCurrent && fresh == nil:
			fresh = pod
		case !isCurrent && old == nil:
			old = pod
		default:
			p.todo.remove = append(p.todo.remove, pod)
		}
	}
	if fresh != nil && old != nil && (!podstate.Ready(old) || p.available(fresh)) {
		p.todo.remove = append(p.todo.remove, old)
	}
}

// removeStranded removes pods that wait to be placed on a node that is gone. Those
// that were placed are the pod garbage collector's.
func (p *pass) removeStranded() {
	for _, node := range slices.Sorted(maps.Keys(p.pods)) {
		if _, exists := p.verdicts[node]; exists {
			continue
		}
		for _, pod := range p.pods[node] {
			if pod.Spec.NodeName == "" && !p.dying(pod) {
				p.todo.remove = append(p.todo.remove, pod)
			}
		}
	}
}
