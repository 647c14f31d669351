package probes

import (
	"net"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/tools/record"
)

// times plays a schedule in which the n-th probe succeeds, if n >= 0, and
// returns milliseconds after the first, negative for extra probes.
func times(eager bool, success, count int) []int {
	first := time.Unix(1000, 0)
	s := newSchedule(first, time.Second, eager)
	var out []int
	for i := range count {
		at := int(s.next.Sub(first) / time.Millisecond)
		if s.extra() {
			at = -at
		}
		out = append(out, at)
		s.advance(i == success, s.next)
	}
	return out
}

func TestSchedule(t *testing.T) {
	for _, tc := range []struct {
		name    string
		eager   bool
		success int
		want    []int
	}{
		{"regular", false, -1, []int{0, 1000, 2000, 3000}},
		{"eager without success", true, -1, []int{0, -50, -150, -350, -750, 1000, 2000, 3000}},
		{"success at once", true, 0, []int{0, 1000, 2000}},
		{"success of an extra probe", true, 2, []int{0, -50, -150, 1150, 2150}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, times(tc.eager, tc.success, len(tc.want))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestMissedProbesAreNotMadeUpFor(t *testing.T) {
	first := time.Unix(1000, 0)
	s := newSchedule(first, time.Second, false)
	late := first.Add(10 * time.Second)
	s.advance(false, late)
	if !s.next.Equal(late) {
		t.Errorf("next = %v, want %v", s.next, late)
	}
	s.advance(false, late)
	if want := late.Add(time.Second); !s.next.Equal(want) {
		t.Errorf("then = %v, want %v", s.next, want)
	}
}

func TestAServerThatListensLateIsSoonReady(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	changed := make(chan struct{}, 1)
	set := New(Config{Events: record.NewFakeRecorder(100), Changed: func() { changed <- struct{}{} }})
	defer set.Close()
	port := intstr.FromInt32(int32(l.Addr().(*net.TCPAddr).Port))
	c := &corev1.Container{ReadinessProbe: &corev1.Probe{PeriodSeconds: 60, ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: port}}}}
	begin := time.Now()
	set.Sync(t.Context(), []Target{{Pod: &corev1.Pod{}, Container: c, ID: "id", StartedAt: begin, IP: "127.0.0.1"}})
	time.Sleep(100 * time.Millisecond) // the server's start
	if l, err = net.Listen("tcp", address); err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	select {
	case <-changed:
	case <-time.After(10 * time.Second):
		t.Fatal("not ready within a sixth of the period")
	}
	if !set.Ready("id") {
		t.Error("changed, but not ready")
	}
}
