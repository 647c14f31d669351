package scheduler

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	clienttesting "k8s.io/client-go/testing"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
	"github.com/setpoint-io/setpoint/controllers/reconcile/actions"
	"github.com/setpoint-io/setpoint/controllers/reconcile/numbers"
)

// tapped is a client that accounts writes of pods to the passes that made them, as a server's does.
type tapped struct{ kubernetes.Interface }

type tappedCore struct{ typedcorev1.CoreV1Interface }

type tappedPods struct{ typedcorev1.PodInterface }

func (c tapped) CoreV1() typedcorev1.CoreV1Interface { return tappedCore{c.Interface.CoreV1()} }

func (c tappedCore) Pods(namespace string) typedcorev1.PodInterface {
	return tappedPods{c.CoreV1Interface.Pods(namespace)}
}

func (p tappedPods) Bind(ctx context.Context, b *corev1.Binding, o metav1.CreateOptions) error {
	return account(ctx, "create", "pods/binding "+b.Name, p.PodInterface.Bind(ctx, b, o))
}

func (p tappedPods) Patch(
	ctx context.Context, name string, kind types.PatchType, data []byte, o metav1.PatchOptions, sub ...string,
) (*corev1.Pod, error) {
	pod, err := p.PodInterface.Patch(ctx, name, kind, data, o, sub...)
	return pod, account(ctx, "patch", "pods/status "+name, err)
}

func (p tappedPods) Delete(ctx context.Context, name string, o metav1.DeleteOptions) error {
	return account(ctx, "delete", "pods "+name, p.PodInterface.Delete(ctx, name, o))
}

func account(ctx context.Context, verb, object string, err error) error {
	pass, _ := reconcile.PassFrom(ctx)
	if err == nil {
		pass.Wrote(object, 0)
		pass.Did(actions.Line{Verb: verb, Object: object, Code: 200})
	}
	return err
}

// TestAPassSaysWhatItWrote: each attempt to place a pod is one pass, with its binding, its report and its evictions.
func TestAPassSaysWhatItWrote(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var ledger numbers.Ledger
		client := tapped{fake.NewSimpleClientset(testNode("node-1", "z", "2", "8Gi"))}
		w := &world{t: t, client: client.Interface.(*fake.Clientset)}
		w.client.PrependReactor("create", "pods", w.bind)
		factory := informers.NewSharedInformerFactory(w.client, 0)
		cfg := Config{Client: client, Informers: factory, Numbers: &ledger, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))}
		if _, err := informersOf(factory, Reads(cfg.serves)); err != nil {
			t.Fatal(err)
		}
		factory.Start(ctx.Done())
		done := make(chan error)
		go func() { done <- Run(ctx, cfg) }()
		defer func() {
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
			factory.Shutdown()
		}()
		synctest.Wait()
		next := uint64(0)
		wantPass(t, &ledger, &next, w, testPod("small", "2", ""), numbers.PassReport{Writes: 1, Acts: did("create pods/binding small")})
		wantPass(t, &ledger, &next, w, testPod("huge", "64", ""),
			numbers.PassReport{Writes: 1, Acts: did("patch pods/status huge"), Error: "0/1 nodes are available"})
		important := testPod("important", "2", "")
		important.Spec.Priority = new(int32(7))
		// It names its node, marks and evicts the victim, and says why it waits.
		wantPass(t, &ledger, &next, w, important, numbers.PassReport{Writes: 4, Error: "0/1 nodes are available"})
		if report := ledger.Reports(time.Now())[0]; report.WritesPerMinute < 6 || report.Passes < 3 {
			t.Errorf("%+v", report)
		}
	})
}

func did(what string) []numbers.Act { return []numbers.Act{{Did: what}} }

// wantPass creates a pod and looks for such a pass about it among the new ones. An attempt that evicts may end after the next one, which
// binds.
func wantPass(t *testing.T, ledger *numbers.Ledger, next *uint64, w *world, pod *corev1.Pod, want numbers.PassReport) {
	t.Helper()
	w.createPod(pod)
	synctest.Wait()
	passes, end, _ := ledger.PassesSince(*next)
	*next = end
	i := slices.IndexFunc(passes, func(got numbers.PassReport) bool {
		return got.Key == "default/"+pod.Name && got.Writes == want.Writes &&
			strings.HasPrefix(got.Error, want.Error) && (want.Error == "") == (got.Error == "")
	})
	if i < 0 {
		t.Fatalf("%+v, want one about %s with %d writes and the error %q", passes, pod.Name, want.Writes, want.Error)
	}
	got := passes[i]
	if len(want.Acts) == 1 && (len(got.Acts) != 1 || got.Acts[0].Did != want.Acts[0].Did) {
		t.Errorf("acts: %+v, want %+v", got.Acts, want.Acts)
	}
	if len(got.Acts) != got.Writes {
		t.Errorf("%d acts of %d writes: %+v", len(got.Acts), got.Writes, got.Acts)
	}
}

// wantErrors looks at the errors of all passes so far, by what they begin with.
func (w *world) wantErrors(want ...string) {
	w.t.Helper()
	passes, _, _ := w.ledger.PassesSince(0)
	ok := len(passes) == len(want)
	for i := 0; ok && i < len(want); i++ {
		ok = strings.HasPrefix(passes[i].Error, want[i]) && (want[i] != "" || passes[i].Error == "")
	}
	if !ok {
		w.t.Errorf("passes: %+v, want those with the errors %q", passes, want)
	}
}

// TestThePassesOfAnEndedTerm: an attempt whose report still waits when the term ends is a pass, too.
func TestThePassesOfAnEndedTerm(t *testing.T) {
	inWorld(t, []runtime.Object{testNode("node-1", "z", "1", "8Gi")}, func(w *world) {
		w.createPod(testPod("huge", "64", ""))
		w.wantCondition("huge", corev1.PodReasonUnschedulable, "0/1 nodes are available")
		if _, err := w.client.CoreV1().Nodes().Create(t.Context(), testNode("node-2", "z", "1", "8Gi"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		w.wantErrors("0/1 nodes are available") // the second one's report waits for reportInterval
		w.end()
		w.wantErrors("0/1 nodes are available", "0/2 nodes are available")
	})
}

// gated is a pod that nobody may place yet.
func gated(name string) *corev1.Pod {
	pod := testPod(name, "1", "")
	pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/quota"}}
	return pod
}

// TestAGatedPodIsOnePass: its condition is written once, and what happens to the pod afterwards is no pass, since nothing is written.
func TestAGatedPodIsOnePass(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		w.createPod(gated("a"))
		for _, app := range []string{"mail", "news"} {
			time.Sleep(2 * reportInterval)
			w.wantCondition("a", corev1.PodReasonSchedulingGated, gatedMessage)
			pod := w.pod("a").DeepCopy()
			pod.Labels["app"] = app
			if _, err := w.client.CoreV1().Pods("default").Update(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(2 * reportInterval)
		w.wantErrors("")
	})
}

// TestARefusedReportOfAGatedPod: each try is a pass, which says why it failed.
func TestARefusedReportOfAGatedPod(t *testing.T) {
	inWorld(t, nil, func(w *world) {
		refusals := 2
		w.client.PrependReactor("patch", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
			refusals--
			return refusals >= 0, nil, errors.New("no quorum")
		})
		w.createPod(gated("a"))
		time.Sleep(2 * reportInterval)
		w.wantCondition("a", corev1.PodReasonSchedulingGated, gatedMessage)
		w.wantErrors("no quorum", "no quorum", "")
	})
}
