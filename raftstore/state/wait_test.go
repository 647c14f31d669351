package state_test

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/setpoint-io/setpoint/raftstore/state"
)

func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLog(state.Options{})
		var byRevision, byIndex *state.Root
		go func() { byRevision, _ = l.WaitRevision(t.Context(), 2) }()
		go func() { byIndex, _ = l.WaitIndex(t.Context(), 3) }()
		l.mustOp(t, put("a", "1"))
		synctest.Wait()
		if byRevision != nil || byIndex != nil {
			t.Fatal("returned too early")
		}
		l.mustOp(t, put("a", "2"))
		l.mustOp(t, del("none"))
		synctest.Wait()
		if byRevision == nil || byRevision.Revision != 2 || byIndex == nil || byIndex.Index != 3 {
			t.Fatalf("got %+v, %+v", byRevision, byIndex)
		}
	})
}

func TestWaitEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := newLog(state.Options{}).WaitRevision(ctx, 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}

func TestRestoreWakesWhoWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		live, behind := newLog(state.Options{}), newLog(state.Options{})
		live.mustOp(t, put("a", "1"))
		done := make(chan error, 1)
		go func() { _, err := behind.WaitRevision(t.Context(), 1); done <- err }()
		synctest.Wait()
		if err := behind.Restore(bytes.NewReader(snapshotOf(t, live.State))); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
