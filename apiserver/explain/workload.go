package explain

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// revisionAnnotation is upstream's, on a Deployment and on each of its ReplicaSets.
const revisionAnnotation = "deployment.kubernetes.io/revision"

// deployment explains a Deployment by its newest ReplicaSet.
func (e *explainer) deployment(name Object, d *appsv1.Deployment) finding {
	f, wanted := finding{}, wantedReplicas(d.Spec.Replicas)
	sets := owned[*appsv1.ReplicaSet](e, ReplicaSets, d)
	s := d.Status
	isNew := s.ObservedGeneration >= d.Generation
	done := isNew && s.UpdatedReplicas == wanted && s.AvailableReplicas == wanted && s.Replicas == wanted
	if d.Spec.Paused && (!isNew || newest(sets, d) == nil || s.UpdatedReplicas < wanted) {
		f.blame(Cause{
			Object: name, What: "it is paused, so changes of its template are not rolled out",
			Command: kubectl(name.Namespace, "rollout", "resume", name.qualified(), name.Name),
		})
	}
	if done && len(f.causes) == 0 {
		f.clear(name, "all %d replicas are up to date and available", wanted)
		return f.conclude("", name.String()+" is rolled out")
	}
	set := newest(sets, d)
	if set != nil {
		e.behind(&f, ReplicaSets.of(set), set)
	} else if !d.Spec.Paused {
		e.refused(&f, name, d, 1)
	}
	e.deadline(&f, name, d, set)
	for _, old := range firstOf(sets) {
		if set != nil && old.UID != set.UID && old.Status.Replicas > 0 {
			f.clear(ReplicaSets.of(old), "it is of an earlier revision and keeps %d replicas until new ones are available", old.Status.Replicas)
		}
	}
	e.clearBudgets(&f, d.Namespace)
	held := fmt.Sprintf("the rollout of %s is held: %d of %d replicas are up to date, %d available", name, s.UpdatedReplicas, wanted, s.AvailableReplicas)
	return f.conclude(held, fmt.Sprintf("%s is being rolled out: %d of %d replicas are available", name, s.AvailableReplicas, wanted))
}

func wantedReplicas(n *int32) int32 {
	if n == nil {
		return 1
	}
	return *n
}

// newest is the ReplicaSet of the Deployment's revision.
func newest(sets []*appsv1.ReplicaSet, d *appsv1.Deployment) *appsv1.ReplicaSet {
	for _, set := range sets {
		if set.Annotations[revisionAnnotation] == d.Annotations[revisionAnnotation] {
			return set
		}
	}
	return nil
}

// deadline tells of a rollout that took too long; going back is the change if there is an earlier revision.
func (e *explainer) deadline(f *finding, name Object, d *appsv1.Deployment, set *appsv1.ReplicaSet) {
	for _, c := range d.Status.Conditions {
		switch {
		case c.Type != appsv1.DeploymentProgressing:
		case c.Reason == "ProgressDeadlineExceeded":
			cause := Cause{Object: name, What: c.Reason + ": " + c.Message, Change: "the rollout goes on once what holds its pods is changed"}
			if revision, err := strconv.Atoi(d.Annotations[revisionAnnotation]); err == nil && revision > 1 && set != nil {
				cause.Change += "; or go back to the revision before:"
				cause.Command = kubectl(name.Namespace, "rollout", "undo", name.qualified(), name.Name)
			}
			f.blame(cause)
		case c.Status == corev1.ConditionTrue:
			f.clear(name, "its progress deadline has not passed: %s", c.Message)
		}
	}
}

// behind blames why a set of pods has too few: those that are refused, or not ready.
func (e *explainer) behind(f *finding, name Object, set *appsv1.ReplicaSet) {
	wanted := wantedReplicas(set.Spec.Replicas)
	e.refused(f, name, set, int64(wanted-set.Status.Replicas))
	e.podsOf(f, owned[*corev1.Pod](e, Pods, set))
}

// podsOf blames the pods that are not ready, and clears the others.
func (e *explainer) podsOf(f *finding, pods []*corev1.Pod) {
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	cleared := 0
	for _, pod := range pods {
		if isReady(pod) && pod.DeletionTimestamp == nil {
			if cleared++; cleared <= suspectsMax {
				f.clear(Pods.of(pod), "it is ready")
			}
			continue
		}
		below := e.of(Pods.of(pod), pod)
		if len(below.causes) > 0 {
			f.blame(below.asCause(Pods.of(pod)))
		}
		f.innocent = append(f.innocent, firstOf(below.innocent)...)
	}
}

func (e *explainer) replicaSet(name Object, set *appsv1.ReplicaSet) finding {
	f, wanted := finding{}, wantedReplicas(set.Spec.Replicas)
	if set.Status.AvailableReplicas >= wanted && set.Status.Replicas == wanted {
		f.clear(name, "all %d replicas are available", wanted)
		return f.conclude("", name.String()+" has what it wants")
	}
	e.behind(&f, name, set)
	text := fmt.Sprintf("%s has %d of %d replicas available", name, set.Status.AvailableReplicas, wanted)
	return f.conclude(text, text+", and nothing is known to hold it")
}

func (e *explainer) statefulSet(name Object, set *appsv1.StatefulSet) finding {
	f, wanted := finding{}, wantedReplicas(set.Spec.Replicas)
	s := set.Status
	updated := s.UpdatedReplicas >= wanted || set.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType
	if s.ObservedGeneration >= set.Generation && s.ReadyReplicas == wanted && s.Replicas == wanted && updated {
		f.clear(name, "all %d replicas are ready and up to date", wanted)
		return f.conclude("", name.String()+" has what it wants")
	}
	if u := set.Spec.UpdateStrategy.RollingUpdate; u != nil && u.Partition != nil && *u.Partition > 0 && s.ReadyReplicas == wanted {
		f.blame(Cause{
			Object: name, What: fmt.Sprintf("its partition is %d, so pods with a lower number are not updated", *u.Partition),
			Command: patch(name, "merge", fields(0, "spec", "updateStrategy", "rollingUpdate", "partition")),
		})
	}
	e.refused(&f, name, set, int64(wanted-s.Replicas))
	e.podsOf(&f, owned[*corev1.Pod](e, Pods, set))
	e.clearBudgets(&f, set.Namespace)
	text := fmt.Sprintf("%s has %d of %d replicas ready, %d up to date", name, s.ReadyReplicas, wanted, s.UpdatedReplicas)
	return f.conclude(text, text+", and nothing is known to hold it")
}

func (e *explainer) daemonSet(name Object, set *appsv1.DaemonSet) finding {
	f, s := finding{}, set.Status
	updated := s.UpdatedNumberScheduled == s.DesiredNumberScheduled || set.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType
	if s.ObservedGeneration >= set.Generation && s.NumberAvailable == s.DesiredNumberScheduled && updated {
		f.clear(name, "its pods are available on all %d nodes that it wants", s.DesiredNumberScheduled)
		return f.conclude("", name.String()+" has what it wants")
	}
	e.refused(&f, name, set, int64(s.DesiredNumberScheduled-s.CurrentNumberScheduled))
	e.podsOf(&f, owned[*corev1.Pod](e, Pods, set))
	text := fmt.Sprintf("%s has available pods on %d of %d nodes", name, s.NumberAvailable, s.DesiredNumberScheduled)
	return f.conclude(text, text+", and nothing is known to hold it")
}

// refused blames what keeps a loop from creating pods: missing is how many there are too few.
func (e *explainer) refused(f *finding, name Object, owner metav1.Object, missing int64) {
	message := e.refusalOf(name, owner, missing > 0)
	if message == "" {
		e.clearQuotas(f, name.Namespace, "")
		return
	}
	cause := e.refusal(name, owner, message, max(missing, 1))
	f.blame(cause)
	e.clearQuotas(f, name.Namespace, cause.Object.Name)
	e.clearWebhooks(f, cause.Object)
}

// refusalOf is why the API refused what the loop wrote: as its condition says, its failing key, or its last event.
func (e *explainer) refusalOf(name Object, owner metav1.Object, missing bool) string {
	if set, is := owner.(*appsv1.ReplicaSet); is {
		for _, c := range set.Status.Conditions {
			if c.Type == appsv1.ReplicaSetReplicaFailure && c.Status == corev1.ConditionTrue {
				message, _, _ := strings.Cut(c.Message, "\n") // a line for each pod
				return message
			}
		}
	}
	if failing := e.Failing(name); len(failing) > 0 {
		return failing[0].Error
	}
	if warning := e.lastWarning(owner); missing && warning != nil && warning.Reason == "FailedCreate" {
		return warning.Message
	}
	return ""
}
