package statefulset

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

var now = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

func newSet(replicas int32, change ...func(set *appsv1.StatefulSet)) *appsv1.StatefulSet {
	labels := map[string]string{"app": "web"}
	set := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "ns", UID: "set"},
		Spec: appsv1.StatefulSetSpec{
			Replicas: &replicas, ServiceName: "svc", Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "v1"}}}},
			PodManagementPolicy:  appsv1.OrderedReadyPodManagement,
			RevisionHistoryLimit: new(int32(2)),
			UpdateStrategy: appsv1.StatefulSetUpdateStrategy{Type: appsv1.RollingUpdateStatefulSetStrategyType,
				RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{Partition: new(int32), MaxUnavailable: new(intstr.FromInt32(1))}},
		},
	}
	for _, f := range change {
		f(set)
	}
	return set
}

func parallel(set *appsv1.StatefulSet) { set.Spec.PodManagementPolicy = appsv1.ParallelPodManagement }
func onDelete(set *appsv1.StatefulSet) {
	set.Spec.UpdateStrategy = appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType}
}
func plainRolling(set *appsv1.StatefulSet) {
	set.Spec.UpdateStrategy.RollingUpdate = nil
	set.Status.CurrentReplicas = 1
}
func dying(set *appsv1.StatefulSet) { set.DeletionTimestamp = &metav1.Time{Time: now} }
func from(start int32) func(set *appsv1.StatefulSet) {
	return func(set *appsv1.StatefulSet) { set.Spec.Ordinals = &appsv1.StatefulSetOrdinals{Start: start} }
}
func rolling(partition int32, unavailable string) func(set *appsv1.StatefulSet) {
	return func(set *appsv1.StatefulSet) {
		set.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: &partition,
			MaxUnavailable: new(intstr.Parse(unavailable))}
	}
}
func minReady(seconds int32) func(set *appsv1.StatefulSet) {
	return func(set *appsv1.StatefulSet) { set.Spec.MinReadySeconds = seconds }
}
func claims(scaled, deleted appsv1.PersistentVolumeClaimRetentionPolicyType) func(set *appsv1.StatefulSet) {
	return func(set *appsv1.StatefulSet) {
		set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}}
		set.Spec.PersistentVolumeClaimRetentionPolicy = &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{WhenScaled: scaled, WhenDeleted: deleted}
	}
}

const (
	retain = appsv1.RetainPersistentVolumeClaimRetentionPolicyType
	remove = appsv1.DeletePersistentVolumeClaimRetentionPolicyType
)

// pods makes pods of words such as "0", "1-old", "2-unready", "3-old-gone".
func pods(set *appsv1.StatefulSet, words string) (out []*corev1.Pod) {
	for word := range strings.FieldsSeq(words) {
		digits, traits, _ := strings.Cut(word, "-")
		var ordinal int
		_, _ = fmt.Sscan(digits, &ordinal)
		p := newPod(set, &set.Spec.Template, "new", ordinal)
		p.UID = types.UID("pod-" + digits)
		p.Status.Phase = corev1.PodRunning
		ready := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue,
			LastTransitionTime: metav1.NewTime(now.Add(-time.Minute))}
		for trait := range strings.SplitSeq(traits, "-") {
			switch trait {
			case "old":
				p.Labels[appsv1.StatefulSetRevisionLabel] = "old"
			case "older":
				p.Labels[appsv1.StatefulSetRevisionLabel] = "older"
			case "unready":
				ready.Status = corev1.ConditionFalse
			case "young":
				ready.LastTransitionTime = metav1.NewTime(now.Add(-time.Second))
			case "pending":
				p.Status.Phase, ready.Status = corev1.PodPending, corev1.ConditionFalse
			case "failed":
				p.Status.Phase, ready.Status = corev1.PodFailed, corev1.ConditionFalse
			case "gone":
				p.DeletionTimestamp = &metav1.Time{Time: now}
			case "unlabelled":
				delete(p.Labels, appsv1.StatefulSetPodNameLabel)
			}
		}
		p.Status.Conditions = []corev1.PodCondition{ready}
		out = append(out, p)
	}
	return out
}

// told writes a plan as words, such as "create 0 (old), delete 3".
func told(set *appsv1.StatefulSet, t todo) string {
	var out []string
	for _, u := range append(append(append(append([]unit{}, t.mend...), t.create...), t.own...), t.remove...) {
		for _, s := range u {
			ordinal, _ := ordinalOf(set, s.pod.Name)
			word := fmt.Sprintf("%s %d", strings.TrimSuffix(string(s.verb), " pod"), ordinal)
			if s.verb == createPod && revisionOf(s.pod) != "new" {
				word += " (" + revisionOf(s.pod) + ")"
			}
			out = append(out, word)
		}
	}
	return strings.Join(out, ", ")
}

func look(set *appsv1.StatefulSet, words string, existing ...*corev1.PersistentVolumeClaim) observed {
	return observed{
		pods: pods(set, words), currentTemplate: &set.Spec.Template,
		current: &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: "old"}},
		update:  &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: "new"}},
		claim: func(name string) *corev1.PersistentVolumeClaim {
			for _, c := range existing {
				if c.Name == name {
					return c
				}
			}
			return nil
		},
	}
}

func TestPlan(t *testing.T) {
	for _, c := range []struct {
		name string
		set  *appsv1.StatefulSet
		pods string
		want string
	}{
		{"the first pod", newSet(3), "", "create 0"},
		{"the next pod once the one before is available", newSet(3), "0", "create 1"},
		{"not before", newSet(3), "0-unready", ""},
		{"nor while it is young", newSet(3, minReady(10)), "0-young", ""},
		{"nor while it is going", newSet(3), "0-gone", ""},
		{"all are there", newSet(3), "0 1 2", ""},
		{"a gap before what is new", newSet(3), "0 2", "create 1"},
		{"start ordinal", newSet(2, from(5)), "5", "create 6"},
		{"start ordinal moved up", newSet(2, from(1)), "0 1", "create 2"},
		{"start ordinal moved up, rest", newSet(2, from(1)), "0 1 2", "delete 0"},
		{"failed pods go first", newSet(3), "0-failed 1", "delete 0"},
		{"and come back once they are gone", newSet(3), "0-failed-gone 1", ""},
		{"scale down the highest", newSet(1), "0 1 2", "delete 2"},
		{"scale down one by one", newSet(1), "0 1 2-gone", ""},
		{"scale down waits for those that stay", newSet(1), "0-unready 1", ""},
		{"scale down waits for lower ones", newSet(1), "0 1-unready 2-unready", ""},
		{"scale down of what is broken", newSet(1), "0 1 2-unready", "delete 2"},
		{"scale down to nothing", newSet(0), "0", "delete 0"},
		{"scale down before an update", newSet(2), "0-old 1-old 2-old", "delete 2"},
		{"update the highest", newSet(3), "0-old 1-old 2-old", "delete 2"},
		{"update the next", newSet(3), "0-old 1-old 2", "delete 1"},
		{"update waits", newSet(3), "0-old 1-old 2-pending", ""},
		{"update of two at once", newSet(4, rolling(0, "2")), "0-old 1-old 2-old 3-old", "delete 3, delete 2"},
		{"update of half, rounded down", newSet(5, rolling(0, "50%")), "0-old 1-old 2-old 3-old 4-old", "delete 4, delete 3"},
		{"update of at least one", newSet(3, rolling(0, "1%")), "0-old 1-old 2-old", "delete 2"},
		{"update down to the partition", newSet(3, rolling(2, "3")), "0-old 1-old 2-old", "delete 2"},
		{"partition counts from the start ordinal", newSet(3, from(10), rolling(2, "3")), "10-old 11-old 12-old", "delete 12"},
		{"below the partition a pod comes back as it was", newSet(3, rolling(2, "1")), "0-old 2", "create 1 (old)"},
		{"above it as it will be", newSet(3, rolling(1, "1")), "0-old", "create 1"},
		{"without a partition the status tells", newSet(3, plainRolling), "", "create 0 (old)"},
		{"without a partition the status tells the rest", newSet(3, plainRolling), "0-old", "create 1"},
		{"on delete nothing is updated", newSet(2, onDelete), "0-old 1-old", ""},
		{"on delete a missing pod is new", newSet(2, onDelete), "1-old", "create 0"},
		{"a dying set is left alone", newSet(3, dying), "0-failed 1-old", ""},
		{"identity is mended", newSet(2), "0-unlabelled 1", "update 0"},
		{"identity is mended in its turn", newSet(2), "0-pending-unlabelled", ""},

		{"parallel: all at once", newSet(3, parallel), "", "create 0, create 1, create 2"},
		{"parallel: around those that are there", newSet(4, parallel), "1-unready 2-gone", "create 0, create 3"},
		{"parallel: scale down all at once", newSet(1, parallel), "0-unready 1-unready 2 3-gone", "delete 2, delete 1"},
		{"parallel: failed ones and missing ones", newSet(3, parallel), "0-failed 1", "delete 0, create 2"},
		{"parallel: a failed one goes once", newSet(3, parallel), "0-failed-old 1 2", "delete 0"},
		{"parallel: update within the budget", newSet(4, parallel, rolling(0, "2")), "0-old 1-old 2-old 3-gone", "delete 2"},
		{"parallel: what is down costs nothing", newSet(4, parallel), "0-old-unready 1-old 2-old 3-old", "delete 0"},
		{"parallel: what is down goes first", newSet(4, parallel, rolling(0, "2")), "0-old-unready 1-old 2-old 3-old", "delete 0, delete 3"},
		{"parallel: the partition holds for what is down", newSet(3, parallel, rolling(1, "3")), "0-old-unready 1-old 2", "delete 1"},
		{"parallel: no budget left", newSet(3, parallel), "0-old 1-old 2-unready", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, told(c.set, plan(c.set, look(c.set, c.pods), now))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPlanOfHugeSets(t *testing.T) {
	for name, change := range map[string]func(*appsv1.StatefulSet){"ordered": func(*appsv1.StatefulSet) {}, "parallel": parallel} {
		set := newSet(2_000_000_000, change)
		want := map[string]int{"ordered": 0, "parallel": burst}[name]
		if n := len(plan(set, look(set, "0-unready"), now).create); n != want {
			t.Errorf("%s: %d pods to create, want %d", name, n, want)
		}
	}
}

func TestStatus(t *testing.T) {
	for _, c := range []struct {
		name                                        string
		set                                         *appsv1.StatefulSet
		pods                                        string
		replicas, ready, available, current, update int32
		currentRevision                             string
		again                                       time.Duration
	}{
		{"nothing", newSet(2), "", 0, 0, 0, 0, 0, "old", 0},
		{"in between", newSet(3), "0-old 1-old-unready 2", 3, 2, 2, 2, 1, "old", 0},
		{"going", newSet(3), "0-old 1-old-gone", 2, 2, 2, 1, 0, "old", 0},
		{"neither current nor updated", newSet(2), "0-older 1", 2, 2, 2, 0, 1, "old", 0},
		{"complete", newSet(2), "0 1", 2, 2, 2, 2, 2, "new", 0},
		{"complete but for one not ready", newSet(2), "0 1-unready", 2, 1, 1, 0, 2, "old", 0},
		{"not for long enough", newSet(2, minReady(10)), "0 1-young", 2, 2, 1, 2, 2, "new", 9 * time.Second},
		{"one too many", newSet(1), "0 1", 2, 2, 2, 0, 2, "old", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.set.Generation = 7
			got := plan(c.set, look(c.set, c.pods), now)
			want := appsv1.StatefulSetStatus{
				ObservedGeneration: 7, CollisionCount: new(int32), CurrentRevision: c.currentRevision, UpdateRevision: "new",
				Replicas: c.replicas, ReadyReplicas: c.ready, AvailableReplicas: c.available, CurrentReplicas: c.current, UpdatedReplicas: c.update,
			}
			if diff := cmp.Diff(want, got.status); diff != "" {
				t.Error(diff)
			}
			if got.again != c.again {
				t.Errorf("again in %v, want %v", got.again, c.again)
			}
		})
	}
}

// claim makes a claim of ordinal 1 with owners such as "set", "pod", "older pod", "other".
func claim(set *appsv1.StatefulSet, gone bool, owners ...string) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data-web-1", Namespace: "ns"}}
	if gone {
		c.DeletionTimestamp = &metav1.Time{Time: now}
	}
	for _, owner := range owners {
		ref := map[string]metav1.OwnerReference{
			"set":       {APIVersion: "apps/v1", Kind: "StatefulSet", Name: "web", UID: set.UID, Controller: new(true), BlockOwnerDeletion: new(true)},
			"weak set":  {APIVersion: "apps/v1", Kind: "StatefulSet", Name: "web", UID: set.UID},
			"older set": {APIVersion: "apps/v1", Kind: "StatefulSet", Name: "web", UID: "older", Controller: new(true)},
			"pod":       {APIVersion: "v1", Kind: "Pod", Name: "web-1", UID: "pod-1", Controller: new(true), BlockOwnerDeletion: new(true)},
			"older pod": {APIVersion: "v1", Kind: "Pod", Name: "web-1", UID: "older", Controller: new(true)},
			"other":     {APIVersion: "v1", Kind: "ConfigMap", Name: "other", UID: "other", Controller: new(true)},
			"friend":    {APIVersion: "v1", Kind: "ConfigMap", Name: "friend", UID: "friend"},
		}[owner]
		c.OwnerReferences = append(c.OwnerReferences, ref)
	}
	return c
}

func TestOwnersOfClaims(t *testing.T) {
	for _, c := range []struct {
		scaled, deleted  appsv1.PersistentVolumeClaimRetentionPolicyType
		have             string
		replicas         int32
		want             string
		change, conflict bool
	}{
		{retain, retain, "", 2, "", false, false},
		{retain, retain, "set", 2, "", true, false},
		{retain, retain, "other,pod", 1, "other", true, false},
		{retain, remove, "", 2, "set", true, false},
		{retain, remove, "set", 2, "set", false, false},
		{retain, remove, "friend,set", 1, "friend,set", false, false},
		{retain, remove, "weak set", 2, "set", true, false},
		{remove, retain, "", 2, "", false, false},
		{remove, retain, "", 1, "pod", true, false},
		{remove, retain, "pod", 1, "pod", false, false},
		{remove, retain, "pod", 2, "", true, false},
		{remove, remove, "set", 2, "set", false, false},
		{remove, remove, "set", 1, "pod", true, false},
		{remove, remove, "pod", 2, "set", true, false},
		{remove, remove, "older pod", 1, "older pod", false, false},
		{remove, remove, "older set", 2, "older set", false, false},
		{remove, remove, "other", 2, "other", false, true},
		{remove, remove, "other,set", 2, "other", true, true},
	} {
		set := newSet(c.replicas, claims(c.scaled, c.deleted))
		split := func(s string) []string { return strings.FieldsFunc(s, func(r rune) bool { return r == ',' }) }
		got := ownersOf(set, pods(set, "1")[0], claim(set, false, split(c.have)...), isWanted(set, 1))
		want := claim(set, false, split(c.want)...).OwnerReferences
		if diff := cmp.Diff(want, got.refs); diff != "" || got.change != c.change || got.conflict != c.conflict {
			t.Errorf("scaled %s, deleted %s, %d replicas, owned by %q: change %v, conflict %v, %s", c.scaled, c.deleted, c.replicas, c.have, got.change, got.conflict, diff)
		}
	}
}

func TestPlanOfClaims(t *testing.T) {
	for _, c := range []struct {
		name     string
		replicas int32
		policy   func(*appsv1.StatefulSet)
		pods     string
		owners   string // of claim 1; "-" for no claim 1
		gone     bool
		want     string
	}{
		{"claims come before their pod", 2, claims(retain, retain), "0", "-", false, "create claim 1, create 1"},
		{"a claim is used again", 2, claims(retain, retain), "0", "", false, "create 1"},
		{"a claim that goes is waited for", 2, claims(retain, retain), "0", "", true, "await claim 1, create 1"},
		{"a claim of the pod before is waited for", 2, claims(remove, retain), "0", "older pod", false, ""},
		{"unless claims are retained", 2, claims(retain, retain), "0", "older pod", false, "create 1"},
		{"a pending pod gets its claim", 2, claims(retain, retain), "0 1-pending", "-", false, "create claim 1"},
		{"before scaling down the claim gets the pod as owner", 1, claims(remove, remove), "0 1", "set", false, "own claim 1, delete 1"},
		{"after scaling up again the set", 2, claims(remove, remove), "0 1", "pod", false, "own claim 1"},
		{"a stranger's claim is told", 2, claims(remove, remove), "0 1", "other,set", false, "report conflict 1, own claim 1"},
		{"and no more", 2, claims(remove, remove), "0 1", "other", false, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			set := newSet(c.replicas, c.policy)
			var existing []*corev1.PersistentVolumeClaim
			if c.owners != "-" {
				existing = append(existing, claim(set, c.gone, strings.FieldsFunc(c.owners, func(r rune) bool { return r == ',' })...))
			}
			if got := told(set, plan(set, look(set, c.pods, existing...), now)); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
