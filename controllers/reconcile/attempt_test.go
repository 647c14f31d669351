package reconcile

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/setpoint-io/setpoint/controllers/reconcile/actions"
	"github.com/setpoint-io/setpoint/controllers/reconcile/numbers"
)

func ownLoop(ledger *numbers.Ledger) OwnLoop {
	return OwnLoop{Controller: "default-scheduler", Numbers: ledger.Begin("default-scheduler", "active"), Now: time.Now}
}

// write is what a tap tells of one write that was accepted.
func write(ctx context.Context, object string) {
	pass, _ := PassFrom(ctx)
	pass.Wrote(object, 1)
	pass.Did(actions.Line{Verb: "create", Object: object, Code: 201})
}

// TestAnAttemptHasTheWritesOfItsParts, and is noted when the last part has ended.
func TestAnAttemptHasTheWritesOfItsParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ledger numbers.Ledger
		loop := ownLoop(&ledger)
		first, second := loop.Begin(func() string { return "n/a" }), loop.Begin(func() string { return "n/b" })
		var group sync.WaitGroup
		first.Go(&group, func() error {
			time.Sleep(time.Second)
			write(first.In(t.Context()), "pods/binding n/a")
			return errors.New("in part")
		})
		first.Hold()
		first.End(nil)
		write(first.In(t.Context()), "pods/status n/a")
		write(second.In(t.Context()), "pods/binding n/b")
		second.End(nil)
		group.Wait()
		passes, _, _ := ledger.PassesSince(0)
		if len(passes) != 1 || passes[0].Key != "n/b" || passes[0].Writes != 1 || len(passes[0].Acts) != 1 {
			t.Fatalf("a part of the first pass waits, and there are: %+v", passes)
		}
		time.Sleep(time.Minute)
		first.Release()
		passes, _, _ = ledger.PassesSince(1)
		if len(passes) != 1 || passes[0].Key != "n/a" || passes[0].Writes != 2 || len(passes[0].Acts) != 2 || passes[0].Error != "in part" {
			t.Fatalf("the first pass: %+v", passes)
		}
		if passes[0].Took != time.Second {
			t.Errorf("it took %v, want a second: its last part only waited", passes[0].Took)
		}
	})
}

// TestAnAttemptIsNotWatchedForCircles: nothing would make its key rest.
func TestAnAttemptIsNotWatchedForCircles(t *testing.T) {
	var ledger numbers.Ledger
	attempt := ownLoop(&ledger).Begin(func() string { return "n/p" })
	for range 2 * numbers.CircleRepeats {
		write(attempt.In(t.Context()), "pods/binding n/p")
	}
	attempt.End(nil)
	report := ledger.Reports(time.Now())[0]
	if report.WritesPerMinute != 2*numbers.CircleRepeats || len(report.Circles) != 0 || report.Passes != 1 || report.Idle != 0 {
		t.Errorf("%+v, want all writes, one pass and no circle", report)
	}
}

// TestNobodyCounts: an attempt does its parts all the same.
func TestNobodyCounts(t *testing.T) {
	attempt := OwnLoop{Now: time.Now}.Begin(nil)
	if _, ok := PassFrom(attempt.In(t.Context())); ok {
		t.Error("nobody counts, yet there is a pass")
	}
	var group sync.WaitGroup
	done := false
	attempt.Go(&group, func() error { done = true; return nil })
	group.Wait()
	attempt.Hold()
	attempt.Release()
	attempt.End(nil)
	if !done {
		t.Error("the part was not done")
	}
}
