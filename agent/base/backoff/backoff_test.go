package backoff

import (
	"testing"
	"time"
)

func TestPausesDoubleUpToTheLimit(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	var b Backoff
	want := []time.Duration{0, 10, 20, 40, 80, 160, 300, 300}
	for i, seconds := range want {
		failed := now
		if got := b.Remaining(failed, now); got != seconds*time.Second {
			t.Errorf("pause %d = %v, want %v", i, got, seconds*time.Second)
		}
		now = now.Add(b.Remaining(failed, now))
		b.Next(failed, now)
		now = now.Add(time.Second)
	}
}

func TestLongRunStartsOver(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	var b Backoff
	for range 5 {
		b.Next(now, now)
	}
	failed := now.Add(10*time.Minute + time.Second)
	if got := b.Remaining(failed, failed); got != 0 {
		t.Errorf("pause after a long run = %v, want none", got)
	}
	b.Next(failed, failed)
	if b.Delay() != First {
		t.Errorf("delay = %v, want %v", b.Delay(), First)
	}
}

func TestPauseCountsFromTheFailure(t *testing.T) {
	failed := time.Unix(1_000_000, 0)
	var b Backoff
	b.Next(failed, failed)
	if got := b.Remaining(failed, failed.Add(7*time.Second)); got != 3*time.Second {
		t.Errorf("remaining = %v, want 3s", got)
	}
}
