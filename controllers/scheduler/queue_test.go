package scheduler

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controllers/scheduler/plugin"
)

const allEvents = plugin.Event(1<<plugin.EventBits - 1)

// mustPop pops without waiting and checks which pod comes.
func mustPop(t *testing.T, q *queue, want string) task {
	t.Helper()
	got, _ := q.next(time.Now())
	name := ""
	if got.entry != nil {
		name = got.pod.Name
	}
	if name != want {
		t.Fatalf("next is %q, want %q", name, want)
	}
	return got
}

func TestQueueOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := testQueue(nil)
		add := func(name string, priority int32, age time.Duration) {
			pod := testPod(name, "", "")
			pod.Spec.Priority = &priority
			pod.CreationTimestamp = metav1.NewTime(time.Now().Add(-age))
			q.set(pod)
		}
		add("young", 0, time.Second)
		add("old", 0, time.Minute)
		add("urgent", 10, 0)
		add("same-age-later", 0, time.Second)
		for _, want := range []string{"urgent", "old", "young", "same-age-later", ""} {
			mustPop(t, q, want)
		}
	})
}

func TestQueueParkedWaitsForItsEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := testQueue(nil)
		q.set(testPod("a", "", ""))
		e := mustPop(t, q, "a").entry
		q.park(e, plugin.NodeTaints|plugin.PodGone)
		mustPop(t, q, "")
		q.wake(plugin.NodeLabels)
		mustPop(t, q, "")
		q.wake(plugin.PodGone | plugin.NodeGone)
		mustPop(t, q, "a")
	})
}

func TestQueueEventWhileInFlightIsNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := testQueue(nil)
		q.set(testPod("a", "", ""))
		e := mustPop(t, q, "a").entry
		q.wake(plugin.PodGone)
		q.park(e, plugin.PodGone)
		e = mustPop(t, q, "a").entry
		q.park(e, plugin.PodGone) // the event lies before this attempt
		mustPop(t, q, "")
	})
}

func TestQueueActiveGoesBeforeWoken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := testQueue(nil)
		q.set(testPod("waiting", "", ""))
		q.park(mustPop(t, q, "waiting").entry, plugin.PodGone)
		q.wake(plugin.PodGone)
		q.set(testPod("new", "", ""))
		mustPop(t, q, "new")
		mustPop(t, q, "waiting")
	})
}

func TestQueueWokenDoesNotStarve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := testQueue(nil)
		q.set(testPod("waiting", "", ""))
		q.park(mustPop(t, q, "waiting").entry, plugin.PodGone)
		q.wake(plugin.PodGone)
		time.Sleep(backoffMin + backoffWindow)
		q.set(testPod("new", "", ""))
		mustPop(t, q, "waiting") // its backoff has passed, and it is older
		mustPop(t, q, "new")
		for bit, n := range q.waiting {
			if n != 0 {
				t.Errorf("%d parked pods wait for event %d, want none", n, bit)
			}
		}
	})
}

func TestQueueBackoffAfterFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := testQueue(nil)
		q.set(testPod("a", "", ""))
		failing, _ := q.pop(t.Context(), nil)
		for _, want := range []time.Duration{1, 2, 4, 8, 10, 10} {
			start := time.Now()
			q.retry(failing.entry, errPlaced)
			q.wake(allEvents) // events do not shorten it
			failing, _ = q.pop(t.Context(), nil)
			if waited := time.Since(start); waited != want*time.Second {
				t.Errorf("attempt %d came after %v, want %v", failing.entry.refused+1, waited, want*time.Second)
			}
		}
	})
}

// TestQueueWokenByPriority: a stream of pods keeps the woken ones in backoff; of those whose backoff ends in the same second the
// important one comes first, although it was parked last.
func TestQueueWokenByPriority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := testQueue(nil)
		for i, name := range []string{"low", "high", "late"} {
			pod := testPod(name, "", "")
			priority := int32(10 * i)
			pod.Spec.Priority = &priority
			q.set(pod)
			q.park(mustPop(t, q, name).entry, plugin.PodGone)
			time.Sleep([]time.Duration{300 * time.Millisecond, 700 * time.Millisecond, 0}[i])
		}
		q.wake(plugin.PodGone)
		mustPop(t, q, "high")
		mustPop(t, q, "low")
		mustPop(t, q, "late")
	})
}

// TestQueueBackoffGrowsWithEachAttempt: pods that fit nowhere wait longer each time, and a refusal in between does not count.
func TestQueueBackoffGrowsWithEachAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := testQueue(nil)
		q.set(testPod("a", "", ""))
		for _, want := range []time.Duration{1, 2, 4, 8, 10, 10} {
			q.retry(mustPop(t, q, "a").entry, errPlaced)
			time.Sleep(backoffMin)
			q.park(mustPop(t, q, "a").entry, plugin.PodGone)
			parked := time.Now()
			q.wake(plugin.PodGone)
			q.mu.Lock()
			if waits := q.heaps[woken].first().ready.Sub(parked); waits != want*time.Second+backoffWindow {
				t.Errorf("backoff %v, want %v", waits, want*time.Second+backoffWindow)
			}
			q.mu.Unlock()
		}
	})
}

func TestQueueUpdate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := testQueue(nil)
		q.set(testPod("a", "", ""))
		q.park(mustPop(t, q, "a").entry, plugin.PodGone)
		status := testPod("a", "", "")
		status.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled}}
		q.set(status) // nothing a plugin looks at: stays parked
		mustPop(t, q, "")
		tolerant := testPod("a", "", "")
		tolerant.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		q.set(tolerant)
		inFlight := mustPop(t, q, "a")
		q.set(testPod("a", "1", "")) // changes while in flight: tried again at once
		q.park(inFlight.entry, plugin.PodGone)
		mustPop(t, q, "a")
	})
}

func TestQueueRemovedInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := testQueue(nil)
		q.set(testPod("a", "", ""))
		e := mustPop(t, q, "a").entry
		q.remove(e.pod.UID)
		q.park(e, allEvents)
		q.retry(e, errPlaced)
		q.wake(allEvents)
		mustPop(t, q, "")
		if len(q.entries)+len(q.parked) > 0 {
			t.Error("something is left of a removed pod")
		}
	})
}

func TestQueueFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := testQueue(nil)
		q.set(testPod("a", "", ""))
		q.park(mustPop(t, q, "a").entry, plugin.PodGone)
		q.flush(time.Now().Add(parkedMax - 1))
		mustPop(t, q, "")
		q.flush(time.Now().Add(parkedMax))
		mustPop(t, q, "a")
	})
}

func TestQueuePopWaitsAndEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := testQueue(nil)
		ctx, cancel := context.WithCancel(t.Context())
		var got []string
		go func() {
			for {
				popped, ok := q.pop(ctx, nil)
				if !ok {
					got = append(got, "end")
					return
				}
				got = append(got, popped.pod.Name)
			}
		}()
		synctest.Wait()
		q.set(testPod("a", "", ""))
		synctest.Wait()
		cancel()
		synctest.Wait()
		if fmt.Sprint(got) != "[a end]" {
			t.Errorf("got %v", got)
		}
	})
}
