package statefulset

import (
	"cmp"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/setpoint-io/setpoint/controllers/reconcile/podstate"
)

// burst is the largest number of pods that one pass creates or deletes.
const burst = 500

// observed is the world around one StatefulSet.
type observed struct {
	// pods are controlled by the set, match its selector and have names of its ordinals.
	pods []*corev1.Pod
	// claim finds a claim by its name; nil if there is none.
	claim func(name string) *corev1.PersistentVolumeClaim
	// current and update are the revisions that pods are created from; currentTemplate is the former's template.
	current, update *appsv1.ControllerRevision
	currentTemplate *corev1.PodTemplateSpec
}

// todo is what one pass does, in this order; a stage that fails ends the pass.
type todo struct {
	// mend are writes to pods that stay and to their claims, and deletions of pods that have ended.
	mend []unit
	// create are the missing pods with their claims.
	create []unit
	// own are the owners of claims whose ordinals are no longer wanted, before their pods go.
	own []unit
	// remove are surplus pods, and then outdated ones.
	remove []unit
	// outdated is how many of the removed pods are of the current revision and counted in the status.
	outdated int32
	status   appsv1.StatefulSetStatus
	// again is when a ready pod becomes available; 0 for never.
	again time.Duration
}

// unit are the steps of one pod, one after the other.
type unit []step

// planner makes the plan of one set.
type planner struct {
	observed
	set       *appsv1.StatefulSet
	now       time.Time
	ordered   bool
	first     int
	standing  map[int]*corev1.Pod
	condemned []*corev1.Pod // highest ordinal first
	todo      todo
}

// plan decides what to do. It is pure.
func plan(set *appsv1.StatefulSet, seen observed, now time.Time) todo {
	p := &planner{
		observed: seen, set: set, now: now, first: firstOrdinal(set), standing: map[int]*corev1.Pod{},
		ordered: set.Spec.PodManagementPolicy != appsv1.ParallelPodManagement,
	}
	for _, pod := range seen.pods {
		if ordinal := p.ordinal(pod); isWanted(p.set, ordinal) {
			p.standing[ordinal] = pod
		} else {
			p.condemned = append(p.condemned, pod)
		}
	}
	slices.SortFunc(p.condemned, func(a, b *corev1.Pod) int { return cmp.Compare(p.ordinal(b), p.ordinal(a)) })
	p.todo.status = p.status()
	p.todo.again = p.nextAvailable()
	if set.DeletionTimestamp == nil && p.keep() && p.scaleDown() {
		p.rollOut()
	}
	return p.todo
}

func (p *planner) ordinal(pod *corev1.Pod) int {
	n, _ := ordinalOf(p.set, pod.Name)
	return n
}

func (p *planner) minReady() time.Duration {
	return time.Duration(p.set.Spec.MinReadySeconds) * time.Second
}

// available reports whether a pod does its work and will go on to.
func (p *planner) available(pod *corev1.Pod) bool {
	wait, ready := podstate.AvailableIn(pod, p.minReady(), p.now)
	return ready && wait == 0 && pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil
}

// keep sees to each wanted ordinal. An ordered set goes no further than the first that is not available; false says that
// it stopped there.
func (p *planner) keep() bool {
	for i := range wished(p.set) {
		if len(p.todo.create) == burst {
			break // the next pass goes on
		}
		ordinal := p.first + i
		pod := p.standing[ordinal]
		if pod == nil {
			p.create(ordinal)
		} else {
			p.mend(pod, ordinal)
		}
		if p.ordered && (pod == nil || !p.available(pod)) {
			return false
		}
	}
	return true
}

// create makes the pod of an ordinal, unless a claim of its predecessor is yet to be deleted.
func (p *planner) create(ordinal int) {
	template, revision := &p.set.Spec.Template, p.update.Name
	if p.staysBehind(ordinal) {
		template, revision = p.currentTemplate, p.current.Name
	}
	pod := newPod(p.set, template, revision, ordinal)
	if scaled, _ := deletes(p.set); scaled && p.hasStaleClaim(pod, ordinal) {
		return
	}
	u := append(p.missingClaims(pod, ordinal, true), step{verb: createPod, pod: pod})
	p.todo.create = append(p.todo.create, append(u, p.owners(pod, ordinal)...))
}

// staysBehind reports whether a pod of this ordinal is created from the revision before the rollout.
func (p *planner) staysBehind(ordinal int) bool {
	rolling := p.set.Spec.UpdateStrategy.RollingUpdate
	switch {
	case p.set.Spec.UpdateStrategy.Type != appsv1.RollingUpdateStatefulSetStrategyType:
		return false
	case rolling == nil:
		return ordinal-p.first < int(p.set.Status.CurrentReplicas)
	}
	return ordinal-p.first < partition(rolling)
}

func partition(rolling *appsv1.RollingUpdateStatefulSetStrategy) int {
	if rolling == nil || rolling.Partition == nil {
		return 0
	}
	return int(*rolling.Partition)
}

func (p *planner) hasStaleClaim(pod *corev1.Pod, ordinal int) bool {
	return slices.ContainsFunc(p.claimsOf(ordinal), func(claim *corev1.PersistentVolumeClaim) bool {
		return stale(claim.OwnerReferences, pod, podKind)
	})
}

// claimsOf are the existing claims of an ordinal.
func (p *planner) claimsOf(ordinal int) (claims []*corev1.PersistentVolumeClaim) {
	for i := range p.set.Spec.VolumeClaimTemplates {
		if claim := p.claim(claimName(p.set, &p.set.Spec.VolumeClaimTemplates[i], ordinal)); claim != nil {
			claims = append(claims, claim)
		}
	}
	return claims
}

// missingClaims makes the claims of a pod that do not exist. If refuse is set, one that is being deleted is a failure.
func (p *planner) missingClaims(pod *corev1.Pod, ordinal int, refuse bool) (u unit) {
	for i := range p.set.Spec.VolumeClaimTemplates {
		claim := newClaim(p.set, &p.set.Spec.VolumeClaimTemplates[i], ordinal)
		switch found := p.claim(claim.Name); {
		case found == nil:
			u = append(u, step{verb: createClaim, pod: pod, claim: claim})
		case refuse && found.DeletionTimestamp != nil:
			u = append(u, step{verb: awaitClaim, pod: pod, claim: found})
		}
	}
	return u
}

// owners makes the owners of a pod's claims what the retention policy says.
func (p *planner) owners(pod *corev1.Pod, ordinal int) (u unit) {
	for _, claim := range p.claimsOf(ordinal) {
		o := ownersOf(p.set, pod, claim, isWanted(p.set, ordinal))
		if o.conflict && (o.change || pod.UID == "") {
			u = append(u, step{verb: reportConflict, pod: pod, claim: claim})
		}
		if o.change {
			claim = claim.DeepCopy()
			claim.OwnerReferences = o.refs
			u = append(u, step{verb: ownClaim, pod: pod, claim: claim})
		}
	}
	return u
}

// mend sees to a pod that is there: one that has ended goes, so that it can be created again.
func (p *planner) mend(pod *corev1.Pod, ordinal int) {
	u := p.mended(pod, ordinal)
	if podstate.Finished(pod) {
		u = nil
		if pod.DeletionTimestamp == nil {
			u = unit{{verb: deletePod, pod: pod}}
		}
	}
	if len(u) > 0 && len(p.todo.mend) < burst {
		p.todo.mend = append(p.todo.mend, u)
	}
}

// mended makes a pod and its claims what the set wants. A pod of an ordered set that is not available waits for that, but
// for its claims: it may be Pending because of them.
func (p *planner) mended(pod *corev1.Pod, ordinal int) (u unit) {
	pending := pod.Status.Phase == corev1.PodPending && pod.DeletionTimestamp == nil
	waits := p.ordered && !p.available(pod)
	if pending {
		u = p.missingClaims(pod, ordinal, false)
	}
	if pending || !waits {
		u = append(u, p.owners(pod, ordinal)...)
	}
	if waits {
		return u
	}
	if fixed := conforming(p.set, pod, ordinal); fixed != nil {
		u = append(u, step{verb: updatePod, pod: fixed})
	}
	return u
}

// scaleDown removes pods whose ordinals are not wanted: an ordered set the highest one, once all others are available;
// false says that it is at that.
func (p *planner) scaleDown() bool {
	for _, pod := range p.condemned {
		if u := p.owners(pod, p.ordinal(pod)); len(u) > 0 {
			p.todo.own = append(p.todo.own, u)
		}
	}
	if len(p.condemned) == 0 {
		return true
	}
	if !p.ordered {
		for _, pod := range p.condemned[:min(burst, len(p.condemned))] {
			if pod.DeletionTimestamp == nil {
				p.remove(pod)
			}
		}
		return true
	}
	if pod := p.condemned[0]; pod.DeletionTimestamp == nil && p.mayStop(pod) {
		p.remove(pod)
	}
	return false
}

// mayStop reports whether the highest condemned pod of an ordered set goes now. One that has ended does: it would
// never be available, and the others would wait for ever.
func (p *planner) mayStop(pod *corev1.Pod) bool {
	return p.available(pod) || podstate.Finished(pod) || pod == p.lowestUnavailable()
}

// lowestUnavailable is the condemned pod that an ordered set waits for.
func (p *planner) lowestUnavailable() *corev1.Pod {
	for _, pod := range slices.Backward(p.condemned) {
		if !p.available(pod) {
			return pod
		}
	}
	return nil
}

func (p *planner) remove(pod *corev1.Pod) {
	p.todo.remove = append(p.todo.remove, unit{{verb: deletePod, pod: pod}})
}

// rollOut removes outdated pods, highest ordinal first, as long as no more than maxUnavailable are unavailable. Those
// of a parallel set that are unavailable anyway cost nothing and go first.
func (p *planner) rollOut() {
	if p.set.Spec.UpdateStrategy.Type != appsv1.RollingUpdateStatefulSetStrategyType {
		return
	}
	rolling := p.set.Spec.UpdateStrategy.RollingUpdate
	budget := maxUnavailable(rolling, wished(p.set)) - wished(p.set)
	var up, down []*corev1.Pod
	for _, pod := range p.standing {
		outdated := revisionOf(pod) != p.update.Name && p.ordinal(pod)-p.first >= partition(rolling)
		if p.available(pod) {
			budget++
			if outdated {
				up = append(up, pod)
			}
		} else if outdated && podstate.Active(pod) {
			down = append(down, pod)
		}
	}
	slices.SortFunc(down, func(a, b *corev1.Pod) int { return cmp.Compare(p.ordinal(b), p.ordinal(a)) })
	slices.SortFunc(up, func(a, b *corev1.Pod) int { return cmp.Compare(p.ordinal(b), p.ordinal(a)) })
	for _, pod := range append(down, up[:min(len(up), max(0, budget))]...) {
		p.remove(pod)
		if revisionOf(pod) == p.current.Name {
			p.todo.outdated++
		}
	}
}

// maxUnavailable is how many pods a rollout may make unavailable: at least one.
func maxUnavailable(rolling *appsv1.RollingUpdateStatefulSetStrategy, replicas int) int {
	if rolling == nil || rolling.MaxUnavailable == nil {
		return 1
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(rolling.MaxUnavailable, replicas, false)
	if err != nil {
		return 1
	}
	return max(1, n)
}
