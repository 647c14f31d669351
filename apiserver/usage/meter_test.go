package usage

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/setpoint-io/setpoint/apiserver/kinds"
	"github.com/setpoint-io/setpoint/apiserver/resource"
	"github.com/setpoint-io/setpoint/apiserver/rest"
	"github.com/setpoint-io/setpoint/apiserver/storage"
	"github.com/setpoint-io/setpoint/raftstore/raftstoretest"
	"github.com/setpoint-io/setpoint/raftstore/state"
)

// world is a meter over a store and nodes that use half a core and 64 MiB for each container.
type world struct {
	*Meter
	t     *testing.T
	began time.Time

	mu      sync.Mutex
	asked   []string
	answers func(ctx context.Context, node string) error // nil: all do
}

func inBubble(t *testing.T, do func(w *world)) {
	synctest.Test(t, func(t *testing.T) {
		store := storage.New(raftstoretest.NewLocal(state.Options{}), kinds.NewScheme(), kinds.All())
		w := &world{t: t, began: time.Now()}
		w.Meter = New(Config{Store: store, Source: w, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); w.Run(ctx) }()
		do(w)
		cancel()
		<-done
	})
}

// Summary implements Source.
func (w *world) Summary(ctx context.Context, node *corev1.Node, pods []*corev1.Pod) (*stats.Summary, error) {
	w.mu.Lock()
	w.asked = append(w.asked, node.Name)
	answers := w.answers
	w.mu.Unlock()
	if answers != nil {
		if err := answers(ctx, node.Name); err != nil {
			return nil, err
		}
	}
	half := func(name string) stats.ContainerStats {
		c, own := used(name, time.Now(), 0, 64<<20), uint64(nanos/2)
		*c.CPU.UsageCoreNanoSeconds = uint64(time.Since(w.began)) / 2
		c.CPU.UsageNanoCores = &own
		return c
	}
	s := &stats.Summary{Node: stats.NodeStats{NodeName: node.Name}}
	s.Node.CPU, s.Node.Memory = half("").CPU, half("").Memory
	for _, p := range pods {
		var all []stats.ContainerStats
		for i := range p.Spec.Containers {
			all = append(all, half(p.Spec.Containers[i].Name))
		}
		s.Pods = append(s.Pods, saidOf(p, all...))
	}
	return s, nil
}

func (w *world) answer(answers func(ctx context.Context, node string) error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answers = answers
}

// questions are the nodes that were asked since the last call.
func (w *world) questions() string {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	asked := strings.Join(slices.Sorted(slices.Values(w.asked)), " ")
	w.asked = nil
	return asked
}

func (w *world) put(table *storage.Table, object resource.Object) {
	w.t.Helper()
	w.write(table, object, storage.Change{Object: object})
}

func (w *world) write(table *storage.Table, object resource.Object, change storage.Change) {
	w.t.Helper()
	_, err := table.Write(w.t.Context(), object.GetNamespace(), object.GetName(), func(*storage.View) (*storage.Change, error) {
		return &change, nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) addNode(name string) {
	w.put(w.nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name)}})
}

// shown is what a list shows of nodes or pods: names and cells.
func (w *world) shown(kind rest.Computed) string {
	w.t.Helper()
	list, err := kind.List(w.t.Context(), "")
	if err != nil {
		w.t.Fatal(err)
	}
	var lines []string
	for _, o := range list {
		var cells []string
		for _, c := range kind.Kind.Columns {
			cells = append(cells, fmt.Sprint(c.Cell(o, time.Now())))
		}
		lines = append(lines, strings.Join(cells, " "))
	}
	return strings.Join(lines, ", ")
}

func (w *world) expect(kind rest.Computed, want string) {
	w.t.Helper()
	if got := w.shown(kind); got != want {
		w.t.Errorf("%q, want %q", got, want)
	}
}

func TestWhoAsksIsAnsweredAtOnce(t *testing.T) {
	inBubble(t, func(w *world) {
		w.addNode("n1")
		w.addNode("n2")
		w.put(w.pods, pod("a", "n1", "c", "d"))
		w.put(w.pods, pod("b", "n2", "c"))
		waiting := pod("waiting", "n2", "c")
		waiting.Status.Phase = corev1.PodPending
		w.put(w.pods, waiting)
		nodes, pods := w.Kinds()[0], w.Kinds()[1]
		w.expect(nodes, "n1 500m 64Mi 15s, n2 500m 64Mi 15s")
		w.expect(pods, "a 1 128Mi 15s, b 500m 64Mi 15s")
		if got := w.questions(); got != "n1 n2" {
			t.Errorf("asked %q", got)
		}
		got, err := pods.Get(w.t.Context(), "ns", "b")
		if err != nil || got.GetLabels()["app"] != "b" || got.GetNamespace() != "ns" {
			t.Errorf("%+v, %v", got, err)
		}
		for name, want := range map[string]string{"waiting": `podmetrics.metrics.k8s.io "ns/waiting" not found`, "nobody": `pods "nobody" not found`} {
			if _, err := pods.Get(w.t.Context(), "ns", name); !apierrors.IsNotFound(err) || err.Error() != want {
				t.Errorf("%s: %v", name, err)
			}
		}
		w.addNode("n3") // asked in the next round
		if _, err := nodes.Get(w.t.Context(), "", "n3"); err == nil || err.Error() != `nodemetrics.metrics.k8s.io "n3" not found` {
			t.Error(err)
		}
	})
}

// TestAnIdleClusterIsQuiet: no request, no question; and the first after a pause is answered with new figures.
func TestAnIdleClusterIsQuiet(t *testing.T) {
	inBubble(t, func(w *world) {
		w.addNode("n1")
		nodes := w.Kinds()[0]
		time.Sleep(time.Hour)
		if got := w.questions(); got != "" {
			t.Errorf("nobody asked, but %q was", got)
		}
		for range 3 {
			w.expect(nodes, "n1 500m 64Mi 15s")
			time.Sleep(idleTimeout + time.Hour)
			rounds := len(strings.Fields(w.questions()))
			if want := int(idleTimeout / roundInterval); rounds != want && rounds != want+1 {
				t.Errorf("%d questions after one request, want %d", rounds, want)
			}
			if w.known["n1"] != nil {
				t.Error("what nobody asks for is still known")
			}
		}
		for range 60 { // as an autoscaler does
			w.expect(nodes, "n1 500m 64Mi 15s")
			time.Sleep(roundInterval)
		}
		if rounds := len(strings.Fields(w.questions())); rounds < 59 || rounds > 61 {
			t.Errorf("%d questions in a quarter of an hour", rounds)
		}
	})
}

func TestANodeThatDoesNotAnswer(t *testing.T) {
	inBubble(t, func(w *world) {
		w.addNode("n1")
		w.addNode("n2")
		w.put(w.pods, pod("a", "n1", "c"))
		nodes, pods := w.Kinds()[0], w.Kinds()[1]
		w.expect(nodes, "n1 500m 64Mi 15s, n2 500m 64Mi 15s")
		w.answer(func(ctx context.Context, node string) error {
			if node != "n1" {
				return nil
			}
			<-ctx.Done()
			return errors.New("it hangs")
		})
		time.Sleep(staleAfter - time.Second)
		w.expect(nodes, "n1 500m 64Mi 15s, n2 500m 64Mi 15s")
		w.expect(pods, "a 500m 64Mi 15s")
		time.Sleep(2 * time.Second)
		w.expect(nodes, "n2 500m 64Mi 15s")
		w.expect(pods, "")
		w.answer(nil)
		time.Sleep(roundInterval)
		w.expect(pods, "a 500m 64Mi 15s")
		w.expect(nodes, "n1 500m 64Mi 15s, n2 500m 64Mi 15s")
	})
}

// TestAFirstRoundThatTakesLong does not hold who asks for longer than one node may take.
func TestAFirstRoundThatTakesLong(t *testing.T) {
	inBubble(t, func(w *world) {
		for i := range 3 * questionsAtOnce {
			w.addNode(fmt.Sprintf("n%02d", i))
		}
		w.answer(func(ctx context.Context, node string) error {
			if node == "n00" {
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		})
		begin := time.Now()
		w.expect(w.Kinds()[0], "n00 500m 64Mi 15s")
		if d := time.Since(begin); d != firstRoundTimeout {
			t.Errorf("it took %s", d)
		}
	})
}

// TestAPodWithAnUnknownContainer is not shown: its sum would be too low.
func TestAPodWithAnUnknownContainer(t *testing.T) {
	inBubble(t, func(w *world) {
		w.addNode("n1")
		p := pod("a", "n1", "c")
		w.put(w.pods, p)
		pods := w.Kinds()[1]
		w.expect(pods, "a 500m 64Mi 15s")
		next := p.DeepCopy()
		next.Status.ContainerStatuses = []corev1.ContainerStatus{
			{Name: "c", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
			{Name: "d", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
		}
		w.put(w.pods, next)
		w.expect(pods, "")
		again := pod("a", "n1", "c") // another pod of the name
		again.UID = "uid-2"
		w.write(w.pods, next, storage.Change{Object: next, Delete: true})
		w.put(w.pods, again)
		w.expect(pods, "")
		time.Sleep(roundInterval + time.Second)
		w.expect(pods, "a 500m 64Mi 15s")
	})
}
