package conditions

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var (
	before = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	now    = before.Add(time.Hour)
)

func condition(t corev1.PodConditionType, status corev1.ConditionStatus, reason string, at time.Time) corev1.PodCondition {
	return corev1.PodCondition{Type: t, Status: status, Reason: reason, LastTransitionTime: metav1.NewTime(at)}
}

func list() []corev1.PodCondition {
	return []corev1.PodCondition{condition(corev1.PodScheduled, "True", "", before), condition(corev1.PodReady, "True", "Old", before)}
}

func TestSet(t *testing.T) {
	for _, c := range []struct {
		name string
		next corev1.PodCondition
		want []corev1.PodCondition
	}{
		{"same status keeps its time and place", condition(corev1.PodScheduled, "True", "New", time.Time{}),
			[]corev1.PodCondition{condition(corev1.PodScheduled, "True", "New", before), list()[1]}},
		{"another status is a transition", condition(corev1.PodScheduled, "False", "", time.Time{}),
			[]corev1.PodCondition{condition(corev1.PodScheduled, "False", "", now), list()[1]}},
		{"a new one comes last", condition(corev1.PodInitialized, "False", "", time.Time{}),
			append(list(), condition(corev1.PodInitialized, "False", "", now))},
	} {
		t.Run(c.name, func(t *testing.T) {
			given := list()
			if diff := cmp.Diff(c.want, Pods.Set(given, c.next, now)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(list(), given); diff != "" {
				t.Errorf("the list that was given in: %s", diff)
			}
		})
	}
}

func TestSetLast(t *testing.T) {
	given, next := list(), condition(corev1.PodScheduled, "True", "New", now)
	if diff := cmp.Diff([]corev1.PodCondition{given[1], next}, Pods.SetLast(given, next)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(list(), given); diff != "" {
		t.Errorf("the list that was given in: %s", diff)
	}
}

// TestRoomBehindTheList: a cached list may have capacity that others read.
func TestRoomBehindTheList(t *testing.T) {
	whole := list()
	Pods.Set(whole[:1], condition(corev1.PodInitialized, "True", "", now), now)
	if diff := cmp.Diff(list(), whole); diff != "" {
		t.Error(diff)
	}
}

func TestLook(t *testing.T) {
	given := list()
	if c := Pods.Find(given, corev1.PodReady); c != &given[1] {
		t.Errorf("found %v", c)
	}
	if c := Pods.Find(given, corev1.PodInitialized); c != nil {
		t.Errorf("found %v", c)
	}
	if !Pods.Is(given, corev1.PodReady, "True") || Pods.Is(given, corev1.PodReady, "False") || Pods.Is(given, corev1.PodInitialized, "True") {
		t.Error("Is is wrong")
	}
	if got := Pods.Without(given, corev1.PodReady); len(got) != 1 || got[0].Type != corev1.PodScheduled {
		t.Errorf("without Ready: %v", got)
	}
}
