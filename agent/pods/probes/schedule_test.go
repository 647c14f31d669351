package probes

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/tools/record"

	"github.com/setpoint-io/setpoint/internal/freeport"
)

// times plays a schedule in which the n-th probe succeeds, if n >= 0, and
// returns milliseconds after the container's start, negative for extra probes.
func times(eager bool, success, count int) []int {
	start := time.Unix(1000, 0)
	first := start.Add(time.Millisecond)
	s := newSchedule(start.Add(settleTime), time.Second)
	if eager {
		s.hurry(first, eagerFirst, eagerMax)
	}
	var out []int
	for i := range count {
		at := int(s.next.Sub(start) / time.Millisecond)
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
		{"regular", false, -1, []int{1000, 2000, 3000}},
		{"eager without success", true, -1, []int{-1, -51, -151, -351, -751, 1000, -1500, 2000, -2500, 3000}},
		{"success at once", true, 0, []int{-1, 1001, 2001}},
		{"success of an extra probe", true, 2, []int{-1, -51, -151, 1151, 2151}},
		{"success of a regular probe", true, 5, []int{-1, -51, -151, -351, -751, 1000, 2000, 3000}},
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
	s := newSchedule(first, time.Second)
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

func TestExtraProbesEnd(t *testing.T) {
	extra := 0
	for _, at := range times(true, -1, 100) {
		if at < 0 {
			extra++
		} else if at > 20_000 && at%1000 != 0 {
			t.Errorf("a probe at %d ms", at)
		}
	}
	if extra > 20 {
		t.Errorf("%d extra probes", extra)
	}
}

// TestAHealthyStartIsQuiet: a container that listens within its first second is ready soon after and leaves no event,
// whatever its probe, period and threshold; one that does not is Unhealthy when upstream's first probe would say so.
func TestAHealthyStartIsQuiet(t *testing.T) {
	for _, period := range []int32{1, 10} {
		strict := func(p *corev1.Probe) { p.PeriodSeconds, p.FailureThreshold = period, 1 }
		c := corev1.Container{ReadinessProbe: execProbe("web", strict), LivenessProbe: execProbe("web", strict), StartupProbe: execProbe("web", strict)}
		failing := func(l *lab) { l.set("web", exit(1)) }
		inBubble(t, c, Target{}, func(l *lab) {
			time.Sleep(700 * time.Millisecond)
			l.set("web", nil)
			time.Sleep(500 * time.Millisecond)
			if !l.Started("id") || !l.Ready("id") || l.Failed("id") != "" || len(l.events.Events) != 0 {
				t.Errorf("period %d: started %v, ready %v, failed %q, %d events", period, l.Started("id"), l.Ready("id"), l.Failed("id"), len(l.events.Events))
			}
		}, failing)
		inBubble(t, c, Target{}, func(l *lab) {
			time.Sleep(settleTime + time.Millisecond)
			if l.Failed("id") != Startup || len(l.events.Events) != 1 {
				t.Errorf("period %d: failed %q, %d events", period, l.Failed("id"), len(l.events.Events))
			}
		}, failing)
	}
}

func TestAServerThatListensLateIsSoonReady(t *testing.T) {
	address, err := freeport.Address()
	if err != nil {
		t.Fatal(err)
	}
	changed := make(chan struct{}, 1)
	set := New(Config{Events: record.NewFakeRecorder(100), Changed: func() { changed <- struct{}{} }})
	defer set.Close()
	_, number, _ := strings.Cut(address, ":")
	port := intstr.Parse(number)
	c := &corev1.Container{ReadinessProbe: &corev1.Probe{PeriodSeconds: 60, ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: port}}}}
	begin := time.Now()
	set.Sync(t.Context(), []Target{{Pod: &corev1.Pod{}, Container: c, ID: "id", StartedAt: begin, IP: "127.0.0.1"}})
	time.Sleep(100 * time.Millisecond) // the server's start
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	select {
	case <-changed:
	case <-time.After(10 * time.Second):
		t.Fatal("not ready within a sixth of the period")
	}
	if !set.Ready("id") {
		t.Error("changed, but not ready")
	}
}
