package explain

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/internal/parts"
)

// wanted is what an answer has to have.
type wanted struct {
	scene *scene
	of    Object
	// guilty is a cause, what a part of what is said of it, command the one for it.
	guilty        Object
	what, command string
	// innocent are at least two, each with a part of why.
	innocent [][2]string
}

// TestScenes: each has one cause, and others beside it that must not be blamed.
func TestScenes(t *testing.T) {
	all := map[string]func() wanted{}
	for _, scenes := range []map[string]func() wanted{
		pendingScenes(), claimScenes(), workloadScenes(), jobScenes(), endingScenes(), drainScenes(), serviceScenes(), cronScenes(), autoscalerScenes(),
	} {
		for name, make := range scenes {
			all[name] = make
		}
	}
	for name, make := range all {
		t.Run(name, func(t *testing.T) { make().check(t) })
	}
}

func (w wanted) check(t *testing.T) {
	t.Helper()
	answer := w.scene.explain(t, w.of)
	found := false
	for _, c := range flat(answer.Causes) {
		found = found || c.Object == w.guilty && strings.Contains(c.What, w.what) && c.Command == w.command
		for _, suspect := range w.innocent {
			if c.Object.String() == suspect[0] && strings.Contains(c.What, suspect[1]) {
				t.Errorf("blamed: %+v", c)
			}
		}
	}
	if !found || !answer.Held || answer.Conclusion == "" {
		t.Errorf("%s is not blamed with %q and\n%s\nin %q:\n%+v", w.guilty, w.what, w.command, answer.Conclusion, flat(answer.Causes))
	}
	if len(w.innocent) < 2 {
		t.Error("name two innocent suspects at least: what stands beside the cause, and must not be blamed")
	}
	cleared := names(answer.Innocent)
	for _, suspect := range w.innocent {
		if !hasSuspect(answer.Innocent, suspect) {
			t.Errorf("%s is not cleared with %q:\n%s", suspect[0], suspect[1], cleared)
		}
	}
}

func hasSuspect(all []Suspect, wanted [2]string) bool {
	for _, s := range all {
		if s.Object.String() == wanted[0] && strings.Contains(s.Why, wanted[1]) {
			return true
		}
	}
	return false
}

// TestNothingHolds: what is as it should be has no causes.
func TestNothingHolds(t *testing.T) {
	s := (&scene{}).with(Pods, aPod("p")).with(Nodes, aNode("a", true))
	if answer := s.explain(t, Pods.Named("n", "p")); answer.Held || len(answer.Causes) > 0 || answer.Conclusion != "Pod/p is ready, and may be evicted" {
		t.Errorf("%+v", answer)
	}
}

func TestPodOfAnotherScheduler(t *testing.T) {
	pod := waiting("p")
	pod.Spec.SchedulerName = "theirs"
	s := (&scene{judgement: Judgement{Foreign: true}}).with(Pods, pod).with(Nodes, aNode("a", true))
	got := s.explain(t, Pods.Named("n", "p"))
	if len(got.Causes) != 1 || !strings.Contains(got.Causes[0].What, `asks for the scheduler "theirs", which is not a profile`) {
		t.Errorf("%+v", got)
	}
}

// TestPartsOfServers are on no node, and nobody deletes them for that.
func TestPartsOfServers(t *testing.T) {
	pod := aPod(parts.PodName(parts.Scheduler, "s1"))
	pod.Namespace, pod.Spec.NodeName = parts.Namespace, parts.NodeName("s1")
	pod.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x", parts.SourceAnnotation: parts.Source}
	s := (&scene{}).with(Pods, pod)
	name := Pods.Named(pod.Namespace, pod.Name)
	if answer := s.explain(t, name); answer.Held || answer.Conclusion != "Pod/kube-scheduler-s1 is ready: server s1 says so" {
		t.Errorf("%+v", answer)
	}
	pod.Status.Conditions[0] = corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse, Message: "the server does not answer"}
	answer := s.explain(t, name)
	if !answer.Held || len(answer.Causes) != 1 || answer.Causes[0].What != "the server does not answer" || answer.Causes[0].Command != "" {
		t.Errorf("%+v", answer)
	}
}

// TestOthersAreHidden: a caller who may get the pod only learns that there is something, not what.
func TestOthersAreHidden(t *testing.T) {
	s := pendingScenes()["too little CPU"]().scene
	answer := s.explain(t, Pods.Named("n", "p")).Visible(func(o Object) bool { return o.Kind == "Pod" })
	if len(answer.Nodes) > 0 || len(answer.Causes) != 1 || answer.Causes[0].Object.Name != "" || answer.Causes[0].Command != "" ||
		answer.Causes[0].What != "an object of the kind Node, which you may not get" {
		t.Errorf("%+v", answer)
	}
	for _, suspect := range answer.Innocent {
		if suspect.Object.Kind != "Pod" {
			t.Errorf("%+v", suspect)
		}
	}
}

// TestOneNodeIsVisible: of the nodes' verdicts a caller sees those of the nodes that he may get.
func TestOneNodeIsVisible(t *testing.T) {
	answer := pendingScenes()["too little CPU"]().scene.explain(t, Pods.Named("n", "p"))
	if len(answer.Nodes) < 2 {
		t.Fatalf("%+v", answer.Nodes)
	}
	seen := answer.Visible(func(o Object) bool { return o.Kind == "Pod" || o == Nodes.Named("", "b") })
	if len(seen.Nodes) != 1 || seen.Nodes[0].Name != "b" {
		t.Errorf("%+v", seen.Nodes)
	}
}

// TestQuoting: what a shell would take apart is quoted.
func TestQuoting(t *testing.T) {
	for word, want := range map[string]string{
		"web": "web", "a=b:NoSchedule-": "a=b:NoSchedule-", "": "''", "a b": "'a b'", "$(x)": "'$(x)'", "it's": `'it'\''s'`, "a;b": "'a;b'",
	} {
		if got := quoted(word); got != want {
			t.Errorf("%q: %s, want %s", word, got, want)
		}
	}
}

// TestManyCauses are counted, and circles of objects end.
func TestManyCauses(t *testing.T) {
	if got := atMost(make([]Cause, causesMax+5)); len(got) != causesMax || !strings.Contains(got[causesMax-1].What, "5 more") {
		t.Errorf("%d: %+v", len(got), got)
	}
}
