package scheduler

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/setpoint-io/setpoint/controllers/reconcile/numbers"
	"github.com/setpoint-io/setpoint/controllers/scheduler/plugin"
	"github.com/setpoint-io/setpoint/controllers/scheduler/points"
)

// reportOf is the one report of a ledger.
func reportOf(t *testing.T, ledger *numbers.Ledger) numbers.Report {
	t.Helper()
	reports := ledger.Reports(time.Now())
	if len(reports) != 1 || reports[0].Loop != "default-scheduler" || reports[0].Queue != "active" {
		t.Fatalf("reports: %+v", reports)
	}
	return reports[0]
}

func TestQueueCountsWhatWaitsAndWhatIsWorkedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ledger numbers.Ledger
		q := testQueue(ledger.Begin("default-scheduler", queueName))
		begun := time.Now()
		check := func(when string, depth, working int, oldest time.Duration) {
			t.Helper()
			r := reportOf(t, &ledger)
			if r.Depth != depth || r.Working != working || (r.Oldest != nil) != (depth > 0) {
				t.Fatalf("%s: %+v, want depth %d, working %d", when, r, depth, working)
			}
			if r.Oldest != nil && r.Oldest.Sub(begun) != oldest {
				t.Errorf("%s: the oldest waits since %v, want %v", when, r.Oldest.Sub(begun), oldest)
			}
		}
		q.set(testPod("a", "", ""))
		time.Sleep(time.Second)
		q.set(testPod("b", "", ""))
		q.set(testPod("b", "", "")) // the same again
		check("two wait", 2, 0, 0)
		q.remove("uid-a")
		check("one is gone", 1, 0, time.Second)
		b := mustPop(t, q, "b").entry
		check("it is tried", 0, 1, 0)
		q.park(b, plugin.PodGone)
		check("it is parked", 0, 0, 0)
		time.Sleep(time.Second)
		q.wake(plugin.PodGone)
		check("it is woken", 1, 0, 2*time.Second)
		time.Sleep(backoffMin + backoffWindow)
		q.set(testPod("c", "", ""))
		b = mustPop(t, q, "b").entry // it has joined active meanwhile
		check("one is left", 1, 1, 4*time.Second)
		q.retry(b, errors.New("refused"))
		check("in backoff", 1, 0, 4*time.Second)
		mustPop(t, q, "c")
		q.remove("uid-c") // bound, says the watch
		check("all is quiet", 0, 0, 0)
		if r := reportOf(t, &ledger); r.Adds != 4 || r.Retries != 1 || len(r.Failing) != 1 || r.Failing[0].Key != "default/b" {
			t.Errorf("%+v, want 4 adds, 1 retry, default/b failing", r)
		}
		q.remove("uid-b")
		if r := reportOf(t, &ledger); len(r.Failing) != 0 {
			t.Errorf("a pod that is gone fails: %+v", r.Failing)
		}
	})
}

func TestRefusedBindsAreFailures(t *testing.T) {
	inWorld(t, []runtime.Object{testNode("node-1", "z", "2", "8Gi")}, func(w *world) {
		var refusal error = apierrors.NewInternalError(fmt.Errorf("no quorum"))
		w.refuse.Store(&refusal)
		w.createPod(testPod("a", "1", ""))
		w.createPod(testPod("huge", "64", "")) // parked
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		r := reportOf(t, &w.ledger)
		if r.Depth != 0 || r.Working != 0 || len(r.Failing) != 1 || r.LastError == nil {
			t.Fatalf("%+v, want one failing pod and none that waits", r)
		}
		if f := r.Failing[0]; f.Key != "default/a" || f.Tries <= numbers.TellTries || f.Next == nil || !strings.Contains(f.Error, "no quorum") {
			t.Errorf("failing: %+v", f)
		}
		c := w.ledger.Scheduling.Counts()
		if w.attempts("default-scheduler", numbers.Refused) != r.Failing[0].Tries ||
			w.attempts("default-scheduler", numbers.Unschedulable) == 0 || w.attempts("default-scheduler", numbers.Scheduled) != 0 || c.Preemptions == 0 ||
			c.Pending["unschedulable"] != 1 || c.Pending["backoff"] != 1 || c.Pending["active"] != 0 {
			t.Errorf("counts: %+v", c)
		}
		w.wantEvent("FailedScheduling", fmt.Sprintf("Binding failed %d times in a row", numbers.TellTries))
		w.refuse.Store(nil)
		time.Sleep(backoffMax)
		w.wantNode("a", "node-1")
		if r := reportOf(t, &w.ledger); len(r.Failing) != 0 {
			t.Errorf("a pod with a node fails: %+v", r.Failing)
		}
		if c := w.ledger.Scheduling.Counts(); w.attempts("default-scheduler", numbers.Scheduled) != 1 || c.Pending["backoff"] != 0 {
			t.Errorf("counts: %+v", c)
		}
	})
}

// TestSeries are upstream's metrics: what brought pods to which queue, how many attempts they took, whom they evicted, and the extension
// points that they came through.
func TestSeries(t *testing.T) {
	inWorld(t, []runtime.Object{testNode("node-1", "z", "2", "8Gi")}, func(w *world) {
		w.createPod(testPod("a", "1", ""))
		w.createPod(testPod("b", "1", ""))
		synctest.Wait()
		important := testPod("important", "1", "")
		important.Spec.Priority = new(int32(7))
		w.createPod(important)
		time.Sleep(time.Minute)
		synctest.Wait()
		s := w.ledger.Series()
		for _, c := range []struct {
			queue, event string
			want         float64
		}{{"active", podAdded, 3}, {"unschedulable", attemptFailed, 1}, {"backoff", "AssignedPodDelete", 1}} {
			if got := testutil.ToFloat64(s.Incoming.WithLabelValues(c.queue, c.event)); got != c.want {
				t.Errorf("%v pods came to %s by %s, want %v", got, c.queue, c.event, c.want)
			}
		}
		if attempts := histogramOf(t, s.PodAttempts); attempts.GetSampleCount() != 3 || attempts.GetSampleSum() != 4 {
			t.Errorf("attempts until there was a node: %v, want 1, 1 and 2", attempts)
		}
		if victims := histogramOf(t, s.Victims); victims.GetSampleCount() != 1 || victims.GetSampleSum() != 1 {
			t.Errorf("victims: %v, want one of one preemption", victims)
		}
		for point, status := range map[points.Point]points.Status{
			points.PreFilter: points.Success, points.Filter: points.Unschedulable, points.PostFilter: points.Success,
			points.Reserve: points.Success, points.Bind: points.Success,
		} {
			observer := s.Points.WithLabelValues(string(point), string(status), "default-scheduler")
			if histogramOf(t, observer.(prometheus.Metric)).GetSampleCount() == 0 {
				t.Errorf("no %s ended in %s", point, status)
			}
		}
	})
}

// attempts is how many of a profile ended so.
func (w *world) attempts(profile string, result numbers.Result) int {
	return int(testutil.ToFloat64(w.ledger.Series().Attempts.WithLabelValues(string(result), profile)))
}

func histogramOf(t *testing.T, m prometheus.Metric) *dto.Histogram {
	t.Helper()
	got := &dto.Metric{}
	if err := m.Write(got); err != nil {
		t.Fatal(err)
	}
	return got.Histogram
}
