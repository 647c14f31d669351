package pods

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/setpoint-io/setpoint/agent/pods/podstest"
)

// restartAllOn has a container restart all of its pod's after these exit codes, and never run again by itself.
func restartAllOn(c *corev1.Container, codes ...int32) {
	never := corev1.ContainerRestartPolicyNever
	c.RestartPolicy = &never
	c.RestartPolicyRules = []corev1.ContainerRestartRule{{Action: corev1.ContainerRestartRuleActionRestartAllContainers,
		ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{Operator: corev1.ContainerRestartRuleOnExitCodesOpIn, Values: codes}}}
}

// withInit is a pod with an init container, a sidecar, one that runs and one that ends, none of which runs again but for a rule of the last.
func withInit(last string) *corev1.Pod {
	p := newPod("p", "web", last)
	p.Spec.RestartPolicy = corev1.RestartPolicyNever
	always := corev1.ContainerRestartPolicyAlways
	first, side := p.Spec.Containers[0], p.Spec.Containers[0]
	first.Name, first.Image = "first", "ok"
	side.Name, side.RestartPolicy = "side", &always
	p.Spec.InitContainers = []corev1.Container{first, side}
	restartAllOn(&p.Spec.Containers[1], 42)
	return p
}

// teller records what of the following is told to the API, and can be cut off from it.
type teller struct {
	mu   sync.Mutex
	told []string
	// cutAfter: nothing is told any more after this has been.
	cutAfter string
	cut      bool
}

func (l *teller) listen(w *world) {
	w.client.PrependReactor("patch", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.cut {
			return true, nil, errors.New("no server")
		}
		text := string(action.(clienttesting.PatchAction).GetPatch())
		for _, part := range []string{"RestartAllContainersStarted", `"phase":"Failed"`, "ContainersNotInitialized"} {
			if strings.Contains(text, part) {
				l.told = append(l.told, part)
				l.cut = l.cut || part == l.cutAfter
			}
		}
		return false, nil, nil
	})
}

// mend lets it be told again.
func (l *teller) mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut, l.cutAfter = false, ""
}

// has reports what was told, each once in a row.
func (l *teller) has() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Compact(slices.Clone(l.told))
}

var restartPrograms = map[string]podstest.Program{
	"web": {StopsAfter: time.Minute}, "ok": {ExitAfter: time.Second}, "crash": {ExitAfter: 3 * time.Second, ExitCode: 42},
	"once": {}, "bad": {ExitAfter: time.Second, ExitCode: 1},
}

// TestRestartAllContainers: all start again in order, in the same sandbox, with one more restart each and the end of the former.
func TestRestartAllContainers(t *testing.T) {
	inBubble(t, restartPrograms, func(w *world) {
		w.create(withInit("once"))
		time.Sleep(5 * time.Second)
		synctest.Wait()
		before := w.get("p")
		if condition(before, corev1.AllContainersRestarting) != corev1.ConditionFalse || before.Status.Phase != corev1.PodRunning {
			t.Fatalf("%+v", before.Status)
		}
		api := &teller{}
		api.listen(w)
		calls := len(w.runtime.Calls())
		w.runtime.Crash("c1", 42)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		got := w.runtime.Calls()[calls:]
		want := []string{"stop c0/0 2s", "stop side/0 2s", "remove c0/0", "remove first/0", "remove side/0", "remove c1/0",
			"start first/1", "start side/1", "start c0/1", "start c1/1"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		p := w.get("p")
		if p.Status.Phase != corev1.PodRunning || p.Status.PodIP != before.Status.PodIP || condition(p, corev1.AllContainersRestarting) != corev1.ConditionFalse ||
			condition(p, corev1.PodInitialized) != corev1.ConditionTrue {
			t.Errorf("%+v", p.Status)
		}
		checkEnds(t, p)
		if diff := cmp.Diff([]string{"RestartAllContainersStarted"}, api.has()); diff != "" {
			t.Error(diff)
		}
	})
}

// checkEnds: each container has restarted once, and says how it ended.
func checkEnds(t *testing.T, p *corev1.Pod) {
	t.Helper()
	ends := map[string]string{}
	for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		end := s.LastTerminationState.Terminated
		if end == nil || s.RestartCount != 1 {
			t.Fatalf("%+v", s)
		}
		ends[s.Name] = fmt.Sprint(end.ExitCode, " ", end.Reason)
	}
	want := map[string]string{"first": "0 Completed", "side": "137 RestartingAllContainers", "c0": "137 RestartingAllContainers", "c1": "42 Error"}
	if diff := cmp.Diff(want, ends); diff != "" {
		t.Error(diff)
	}
}

// TestRestartAllWithoutAServer: all start again while nothing can be told, and it is told later.
func TestRestartAllWithoutAServer(t *testing.T) {
	inBubble(t, restartPrograms, func(w *world) {
		w.create(withInit("once"))
		time.Sleep(5 * time.Second)
		api := &teller{cut: true}
		api.listen(w)
		w.runtime.Crash("c1", 42)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if calls := w.runtime.Calls(); !slices.Contains(calls, "start c0/1") || !slices.Contains(calls, "start c1/1") {
			t.Errorf("%v", calls)
		}
		api.mend()
		time.Sleep(time.Minute)
		synctest.Wait()
		p := w.get("p")
		if p.Status.Phase != corev1.PodRunning || len(api.has()) > 0 {
			t.Errorf("%v %+v", api.has(), p.Status)
		}
		checkEnds(t, p)
	})
}

// TestRestartAllWhileInitializing: an init container that is stopped for it has not failed.
func TestRestartAllWhileInitializing(t *testing.T) {
	inBubble(t, restartPrograms, func(w *world) {
		api := &teller{}
		api.listen(w)
		p := withInit("once")
		restartAllOn(&p.Spec.InitContainers[1], 42)
		always := corev1.ContainerRestartPolicyAlways
		p.Spec.InitContainers[1].RestartPolicy = &always
		second := p.Spec.Containers[0]
		second.Name = "second"
		p.Spec.InitContainers = append(p.Spec.InitContainers, second)
		w.create(p)
		time.Sleep(5 * time.Second)
		w.runtime.Crash("side", 42)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if calls := w.runtime.Calls(); !slices.Contains(calls, "start first/1") || !slices.Contains(calls, "start second/1") || slices.Contains(api.has(), `"phase":"Failed"`) {
			t.Errorf("%v %v", api.has(), calls)
		}
	})
}

// TestRestartAllPauses: a container that keeps ending has its pod begin anew less and less often, and the others run meanwhile.
func TestRestartAllPauses(t *testing.T) {
	inBubble(t, restartPrograms, func(w *world) {
		w.create(withInit("crash"))
		starts := func() int {
			synctest.Wait()
			n := 0
			for _, call := range w.runtime.Calls() {
				if strings.HasPrefix(call, "start c0/") {
					n++
				}
			}
			return n
		}
		time.Sleep(10 * time.Second)
		if n := starts(); n != 2 {
			t.Errorf("%d starts, not 2: the first time is at once", n)
		}
		time.Sleep(4 * time.Second)
		p := w.get("p")
		waiting := p.Status.ContainerStatuses[1].State.Waiting
		if waiting == nil || waiting.Reason != "CrashLoopBackOff" || p.Status.ContainerStatuses[0].State.Running == nil || p.Status.Phase != corev1.PodRunning {
			t.Errorf("in a pause: %s %+v", p.Status.Phase, p.Status.ContainerStatuses)
		}
		time.Sleep(46 * time.Second)
		if n := starts(); n != 4 {
			t.Errorf("%d starts, not 4: after 10 and 20 seconds", n)
		}
	})
}

// TestRestartAllIsNotForOthers: no rule fits, or another one does before.
func TestRestartAllIsNotForOthers(t *testing.T) {
	for name, tc := range map[string]struct {
		last  string
		edit  func(*corev1.Pod)
		phase corev1.PodPhase
		again string
	}{
		"no rule fits": {"bad", func(*corev1.Pod) {}, corev1.PodRunning, ""},
		"another rule": {"crash", func(p *corev1.Pod) {
			rules := &p.Spec.Containers[1].RestartPolicyRules
			one := (*rules)[0]
			one.Action = corev1.ContainerRestartRuleActionRestart
			*rules = append([]corev1.ContainerRestartRule{one}, *rules...)
		}, corev1.PodRunning, "start c1/1"},
	} {
		inBubble(t, restartPrograms, func(w *world) {
			p := withInit(tc.last)
			tc.edit(p)
			w.create(p)
			time.Sleep(8 * time.Second)
			synctest.Wait()
			calls := w.runtime.Calls()
			if slices.Contains(calls, "start c0/1") || tc.again != "" && !slices.Contains(calls, tc.again) || w.get("p").Status.Phase != tc.phase {
				t.Errorf("%s: %s %v", name, w.get("p").Status.Phase, calls)
			}
		})
	}
}

// TestRestartAllByAnInitContainer: those before it run again too.
func TestRestartAllByAnInitContainer(t *testing.T) {
	inBubble(t, restartPrograms, func(w *world) {
		p := withInit("once")
		second := p.Spec.Containers[1]
		second.Name, second.Image = "second", "crash"
		p.Spec.InitContainers = append(p.Spec.InitContainers, second)
		w.create(p)
		time.Sleep(8 * time.Second)
		synctest.Wait()
		calls := w.runtime.Calls()
		if !slices.Contains(calls, "start first/1") || !slices.Contains(calls, "start side/1") || slices.Contains(calls, "start c0/0") {
			t.Errorf("%v", calls)
		}
		if got := w.get("p").Status; got.Phase != corev1.PodPending {
			t.Errorf("%+v", got)
		}
	})
}

// TestRestartAllGoesOnWithAnotherAgent: the former one was stopped at any step.
func TestRestartAllGoesOnWithAnotherAgent(t *testing.T) {
	for stopAt, keep := range map[string]string{"stop c0/0": "", "stop side/0": "", "remove c0/0": "first", "remove side/0": "c1"} {
		inBubble(t, restartPrograms, func(w *world) {
			w.runtime.Keep(keep)
			w.create(withInit("once"))
			time.Sleep(5 * time.Second)
			synctest.Wait()
			w.runtime.Crash("c1", 42)
			for !slices.ContainsFunc(w.runtime.Calls(), func(call string) bool { return strings.HasPrefix(call, stopAt) }) {
				time.Sleep(time.Millisecond)
			}
			w.stopAgent()
			w.runtime.Keep("")
			w.startAgent()
			time.Sleep(10 * time.Second)
			synctest.Wait()
			p := w.get("p")
			if p.Status.Phase != corev1.PodRunning || !slices.Contains(w.runtime.Calls(), "start c0/1") || !slices.Contains(w.runtime.Calls(), "start c1/1") {
				t.Errorf("stopped at %s: %s %v", stopAt, p.Status.Phase, w.runtime.Calls())
			}
		})
	}
}

// TestRestartAllGoesOnWhenAllIsRemoved: the former agent was stopped before it could tell that it had removed the last container.
func TestRestartAllGoesOnWhenAllIsRemoved(t *testing.T) {
	inBubble(t, restartPrograms, func(w *world) {
		w.create(withInit("once"))
		time.Sleep(5 * time.Second)
		synctest.Wait()
		api := &teller{cutAfter: "RestartAllContainersStarted"}
		api.listen(w)
		w.runtime.Keep("c1")
		w.runtime.Crash("c1", 42)
		time.Sleep(10 * time.Second)
		w.stopAgent()
		w.runtime.Keep("")
		last, err := w.runtime.ListContainers(t.Context(), nil)
		if err != nil || len(last) != 1 {
			t.Fatal(last, err)
		}
		if err := w.runtime.RemoveContainer(t.Context(), last[0].Id); err != nil {
			t.Fatal(err)
		}
		w.startAgent()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if calls := w.runtime.Calls(); !slices.Contains(calls, "start c0/1") {
			t.Errorf("%v", calls)
		}
		api.mend()
		time.Sleep(time.Minute)
		synctest.Wait()
		if p := w.get("p"); p.Status.Phase != corev1.PodRunning || condition(p, corev1.AllContainersRestarting) != corev1.ConditionFalse {
			t.Errorf("%+v", p.Status)
		}
	})
}
