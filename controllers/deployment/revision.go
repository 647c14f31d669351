package deployment

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/setpoint-io/setpoint/controllers/reconcile/adopt"
	"github.com/setpoint-io/setpoint/controllers/reconcile/revisions"
)

// The annotations by which kubectl and others follow rollouts.
const (
	revisionAnnotation        = "deployment.kubernetes.io/revision"
	revisionHistoryAnnotation = "deployment.kubernetes.io/revision-history"
	desiredAnnotation         = "deployment.kubernetes.io/desired-replicas"
	maxAnnotation             = "deployment.kubernetes.io/max-replicas"
	rollbackToAnnotation      = "deprecated.deployment.rollback.to"
)

// revisionHistoryBytes bounds the list of earlier revisions in an annotation.
const revisionHistoryBytes = 2000

// sameTemplate compares templates without the hash label that only the
// ReplicaSet's carries.
func sameTemplate(a, b *corev1.PodTemplateSpec) bool {
	bare := func(t *corev1.PodTemplateSpec) corev1.PodTemplateSpec {
		out := *t
		out.Labels = maps.Clone(t.Labels)
		delete(out.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
		return out
	}
	x, y := bare(a), bare(b)
	return apiequality.Semantic.DeepEqual(x, y)
}

// findNew is the oldest ReplicaSet with the present template, or nil.
func findNew(d *appsv1.Deployment, sets []*appsv1.ReplicaSet) *appsv1.ReplicaSet {
	for _, rs := range oldestFirst(sets) {
		if sameTemplate(&rs.Spec.Template, &d.Spec.Template) {
			return rs
		}
	}
	return nil
}

func oldestFirst(sets []*appsv1.ReplicaSet) []*appsv1.ReplicaSet {
	sorted := slices.Clone(sets)
	slices.SortFunc(sorted, func(a, b *appsv1.ReplicaSet) int {
		if c := a.CreationTimestamp.Time.Compare(b.CreationTimestamp.Time); c != 0 {
			return c
		}
		return strings.Compare(a.Name, b.Name)
	})
	return sorted
}

// revise makes the current ReplicaSet exist and carry the newest revision.
func (r *rollout) revise() {
	last := int64(0)
	for _, rs := range r.old {
		last = max(last, revisionOf(rs))
	}
	next := strconv.FormatInt(last+1, 10)
	if r.current == nil {
		r.todo.create = r.newSet(next)
		r.todo.revision = next
		return
	}
	to := r.current.DeepCopy()
	copyAnnotations(r.d, to)
	raiseRevision(to, next)
	to.Spec.MinReadySeconds = r.d.Spec.MinReadySeconds
	r.todo.revision = to.Annotations[revisionAnnotation]
	r.change(r.current, to)
}

// refresh revises the current ReplicaSet but does not create it: while ReplicaSets are resized, one more, sized by what
// the others were before, would exceed the surge. Upstream's sync does the same (createIfNotExisted=false).
func (r *rollout) refresh() {
	if r.current != nil {
		r.revise()
	}
}

// rollsBack tells whether this pass makes an older ReplicaSet the current one. Its pods are progress, and that the last rollout has
// timed out is not told of the new one. Upstream judges so too: its pass that scales fails by its own write of the revision,
// and the next one does not scale.
func (r *rollout) rollsBack() bool {
	return r.current != nil && r.current.Annotations[revisionAnnotation] != r.todo.revision
}

// newSet is the ReplicaSet of the present template.
func (r *rollout) newSet(revision string) *appsv1.ReplicaSet {
	d := r.d
	hash := revisions.TemplateHash(&d.Spec.Template, d.Status.CollisionCount)
	template := d.Spec.Template.DeepCopy()
	template.Labels = withLabel(template.Labels, hash)
	selector := d.Spec.Selector.DeepCopy()
	selector.MatchLabels = withLabel(selector.MatchLabels, hash)
	rs := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Name:            d.Name + "-" + hash,
			Namespace:       d.Namespace,
			Labels:          maps.Clone(template.Labels),
			OwnerReferences: []metav1.OwnerReference{adopt.Reference(d, kind)},
		},
		Spec: appsv1.ReplicaSetSpec{
			MinReadySeconds: d.Spec.MinReadySeconds,
			Selector:        selector,
			Template:        *template,
		},
	}
	copyAnnotations(d, rs)
	raiseRevision(rs, revision)
	r.annotate(rs)
	n := r.wish()
	if d.Spec.Strategy.Type != appsv1.RecreateDeploymentStrategyType {
		n = max(0, min(n, n+r.surge-sumSpec(r.old)))
		if r.mayHaveMore(nil) {
			n = 0
		}
	}
	rs.Spec.Replicas = &n
	return rs
}

func withLabel(labels map[string]string, hash string) map[string]string {
	out := maps.Clone(labels)
	if out == nil {
		out = map[string]string{}
	}
	out[appsv1.DefaultDeploymentUniqueLabelKey] = hash
	return out
}

// copyAnnotations gives the ReplicaSet the Deployment's annotations, except
// those that mean something on one of the two only.
func copyAnnotations(d *appsv1.Deployment, rs *appsv1.ReplicaSet) {
	if rs.Annotations == nil {
		rs.Annotations = map[string]string{}
	}
	for k, v := range d.Annotations {
		switch k {
		case corev1.LastAppliedConfigAnnotation, revisionAnnotation, revisionHistoryAnnotation,
			desiredAnnotation, maxAnnotation, rollbackToAnnotation:
		default:
			rs.Annotations[k] = v
		}
	}
}

// raiseRevision sets the revision unless it is already as high, and keeps the
// one it replaces in the history.
func raiseRevision(rs *appsv1.ReplicaSet, revision string) {
	next, _ := strconv.ParseInt(revision, 10, 64)
	before := rs.Annotations[revisionAnnotation]
	if revisionOf(rs) >= next {
		return
	}
	rs.Annotations[revisionAnnotation] = revision
	if before == "" {
		return
	}
	history := before
	if earlier := rs.Annotations[revisionHistoryAnnotation]; earlier != "" {
		history = earlier + "," + before
	}
	for len(history) > revisionHistoryBytes {
		_, history, _ = strings.Cut(history, ",")
	}
	rs.Annotations[revisionHistoryAnnotation] = history
}

// revisionOf reads the revision; 0 when it is missing or no number.
func revisionOf(rs *appsv1.ReplicaSet) int64 {
	n, err := strconv.ParseInt(rs.Annotations[revisionAnnotation], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// trimHistory deletes the oldest ReplicaSets without pods beyond the limit, in place of whatever else the pass would do to them.
func (r *rollout) trimHistory() {
	limit := r.d.Spec.RevisionHistoryLimit
	if limit == nil || *limit == math.MaxInt32 {
		return
	}
	old := slices.DeleteFunc(slices.Clone(r.old), func(rs *appsv1.ReplicaSet) bool { return rs.DeletionTimestamp != nil })
	slices.SortStableFunc(old, func(a, b *appsv1.ReplicaSet) int { return int(revisionOf(a) - revisionOf(b)) })
	for i := range max(0, len(old)-int(*limit)) {
		rs := old[i]
		if rs.Status.Replicas == 0 && replicasOf(rs.Spec.Replicas) == 0 && rs.Status.ObservedGeneration >= rs.Generation {
			r.todo.remove = append(r.todo.remove, rs)
			r.todo.change = slices.DeleteFunc(r.todo.change, func(ch change) bool { return ch.from == rs })
		}
	}
}

// bounds resolves maxSurge and maxUnavailable: surge is rounded up, unavailable
// down, and they are never both 0, for then nothing could move. Replicas and surge
// together are a number of replicas, so they stay below its limit; upstream's sum
// wraps around, and such a Deployment gets no pods.
func bounds(d *appsv1.Deployment) (surge, unavailable int32) {
	ru := d.Spec.Strategy.RollingUpdate
	if d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType || ru == nil {
		return 0, 0
	}
	n := int(replicasOf(d.Spec.Replicas))
	surge = resolve(ru.MaxSurge, n, true)
	unavailable = resolve(ru.MaxUnavailable, n, false)
	if surge == 0 && unavailable == 0 {
		unavailable = 1
	}
	return min(surge, math.MaxInt32-int32(n)), min(unavailable, int32(n))
}

func resolve(v *intstr.IntOrString, total int, up bool) int32 {
	if v == nil {
		return 0
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(v, total, up)
	if err != nil {
		return 0
	}
	return int32(min(n, math.MaxInt32))
}

func replicasOf(n *int32) int32 {
	if n == nil {
		return 1
	}
	return *n
}

// sumSpec is how many pods the sets ask for together, at most the largest number of replicas.
func sumSpec(sets []*appsv1.ReplicaSet) int32 {
	var n int64
	for _, rs := range sets {
		n += int64(replicasOf(rs.Spec.Replicas))
	}
	return int32(min(n, math.MaxInt32))
}

func sumAvailable(sets []*appsv1.ReplicaSet) (n int32) {
	for _, rs := range sets {
		n += rs.Status.AvailableReplicas
	}
	return n
}
