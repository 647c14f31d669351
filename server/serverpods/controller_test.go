package serverpods

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controllers/reconcile/reconciletest"
	"github.com/setpoint-io/setpoint/internal/parts"
)

// servers are a made-up control plane.
type servers struct {
	mu  sync.Mutex
	all map[string]Server
}

func (s *servers) set(server Server) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all[server.Name] = server
}

func (s *servers) remove(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, name)
}

func (s *servers) cluster() Cluster {
	return Cluster{
		Members: func() []string {
			s.mu.Lock()
			defer s.mu.Unlock()
			return slices.Sorted(maps.Keys(s.all))
		},
		Ask: func(_ context.Context, name string) Server {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.all[name]
		},
	}
}

var begun = time.Date(1999, 12, 31, 0, 0, 0, 5e8, time.UTC)

func well(name string, leads bool) Server {
	return Server{Name: name, Address: "192.0.2.1", Leads: leads, Voter: true, Version: "1.2.3", StartedAt: begun}
}

// seen are the parts of all servers, as in "kube-scheduler-s1 Ready Leading".
func seen(w *reconciletest.World) (all []string) {
	for _, pod := range w.Pods(parts.Namespace) {
		text := pod.Name
		for _, c := range pod.Status.Conditions {
			switch {
			case c.Type != corev1.PodReady && c.Type != Leading:
			case c.Status == corev1.ConditionTrue:
				text += " " + strings.TrimPrefix(string(c.Type), "setpoint.io/")
			case c.Type == corev1.PodReady:
				text += " " + c.Reason
			}
		}
		all = append(all, text)
	}
	slices.Sort(all)
	return all
}

func wantSeen(t *testing.T, w *reconciletest.World, want ...string) {
	t.Helper()
	w.Settle()
	slices.Sort(want)
	if diff := cmp.Diff(want, seen(w)); diff != "" {
		t.Error(diff)
	}
}

// allOf are the pods of a server as seen, with what is said of them.
func allOf(server, ofLoops, ofStore, ofAPI string) []string {
	return []string{
		"kube-apiserver-" + server + ofAPI, "kube-controller-manager-" + server + ofLoops,
		"kube-scheduler-" + server + ofLoops, "setpoint-store-" + server + ofStore,
	}
}

func start(t *testing.T, all ...Server) (*reconciletest.World, *servers) {
	s := &servers{all: map[string]Server{}}
	for _, server := range all {
		s.set(server)
	}
	w := reconciletest.New(t)
	w.Run(New(s.cluster()))
	w.Settle()
	return w, s
}

func TestEveryServerHasItsPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		learner := well("s3", false)
		learner.Voter = false
		w, s := start(t, well("s1", true), well("s2", false), learner)
		leader := allOf("s1", " Ready Leading", " Ready Leading", " Ready")
		standby := allOf("s2", " Ready", " Ready", " Ready")
		wantSeen(t, w, slices.Concat(leader, standby, allOf("s3", " NoVoter", " Ready", " Ready"))...)
		w.Writes()
		time.Sleep(time.Hour)
		if writes := w.Writes(); len(writes) > 0 {
			t.Errorf("an unchanged world was written to: %v", writes)
		}
		s.remove("s3")
		time.Sleep(interval)
		wantSeen(t, w, slices.Concat(leader, standby)...)
		s.set(well("s1", false))
		s.set(well("s2", true))
		time.Sleep(interval)
		wantSeen(t, w, slices.Concat(allOf("s1", " Ready", " Ready", " Ready"), allOf("s2", " Ready Leading", " Ready Leading", " Ready"))...)
	})
}

func TestADeletedPodComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := start(t, well("s1", true))
		pods := w.Client.CoreV1().Pods(parts.Namespace)
		if err := pods.Delete(t.Context(), "kube-scheduler-s1", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		wantSeen(t, w, allOf("s1", " Ready Leading", " Ready Leading", " Ready")...)
		dying, err := pods.Get(t.Context(), "kube-scheduler-s1", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		dying.DeletionTimestamp = &metav1.Time{Time: time.Now()}
		if _, err := pods.Update(t.Context(), dying, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		wantSeen(t, w, allOf("s1", " Ready Leading", " Ready Leading", " Ready")...)
		again, err := pods.Get(t.Context(), "kube-scheduler-s1", metav1.GetOptions{})
		if err != nil || again.DeletionTimestamp != nil || again.UID == dying.UID {
			t.Errorf("%v, %v", again, err)
		}
	})
}

func TestAServerThatIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, s := start(t, well("s1", true), well("s2", false))
		leader := allOf("s1", " Ready Leading", " Ready Leading", " Ready")
		silent := Server{Name: "s2", Voter: true, Err: errors.New("no route")}
		s.set(silent)
		s.set(Server{Name: "s3", Voter: true, Err: errors.New("never started")})
		time.Sleep(interval) // the first question that it does not answer
		wantSeen(t, w, append(allOf("s2", " Ready", " Ready", " Ready"), leader...)...)
		time.Sleep(silenceMax)
		wantSeen(t, w, append(allOf("s2", " ServerUnreachable", " ServerUnreachable", " ServerUnreachable"), leader...)...)
		w.Writes()
		time.Sleep(time.Hour)
		if writes := w.Writes(); len(writes) > 0 {
			t.Errorf("a silent server is written of again and again: %v", writes)
		}
		back := well("s2", false)
		back.StartedAt, back.Version = begun.Add(time.Hour), "1.2.4"
		back.Troubles = map[string]string{parts.Store: "the disk is full"}
		s.set(back)
		time.Sleep(interval)
		wantSeen(t, w, append(allOf("s2", " Ready", " Unhealthy", " Ready"), leader...)...)
		pod, err := w.Client.CoreV1().Pods(parts.Namespace).Get(t.Context(), "setpoint-store-s2", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		c := pod.Status.ContainerStatuses[0]
		got := fmt.Sprintln(c.RestartCount, c.Ready, c.Image, pod.Spec.Containers[0].Image, c.State.Running.StartedAt.UTC().Format(time.TimeOnly), pod.Status.PodIP)
		if want := "1 false setpoint.local/setpoint:v1.2.4 setpoint.local/setpoint:v1.2.4 01:00:00 192.0.2.1\n"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	})
}

// TestWhatIsNobodysIsLeftAlone: a kubelet's own mirror pods are not touched.
func TestWhatIsNobodysIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := start(t)
		reconciletest.Add(w, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: parts.Namespace, Name: "kube-scheduler-n1", Annotations: map[string]string{corev1.MirrorPodAnnotationKey: "x", parts.SourceAnnotation: "file"},
		}, Spec: corev1.PodSpec{NodeName: "n1"}})
		time.Sleep(time.Minute)
		wantSeen(t, w, "kube-scheduler-n1")
	})
}
