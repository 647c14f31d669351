package logtrim

import (
	"errors"
	"testing"
)

// deleted is a log whose beginning goes: it notes a gap, a repetition and a deletion that is too large.
type deleted struct {
	t    *testing.T
	next uint64
	fail error
}

func (d *deleted) remove(from, to uint64) error {
	d.t.Helper()
	if d.fail != nil {
		return d.fail
	}
	if from != d.next || to < from || to-from >= SliceEntries {
		d.t.Errorf("removed %d to %d, want at most %d entries from %d", from, to, SliceEntries, d.next)
	}
	d.next = to + 1
	return nil
}

func TestEntriesGoInOrderAsMuchIsAppended(t *testing.T) {
	const last, steps = 8 * SliceEntries, 4
	d := &deleted{t: t, next: 1}
	var b Beginning
	if err := b.Begin(1, last, steps*StepBytes, d.remove); err != nil {
		t.Fatal(err)
	}
	if d.next == 1 || d.next > last/steps+2 {
		t.Errorf("the first step went up to %d of %d", d.next-1, last)
	}
	if err := b.Appended(StepBytes-1, d.remove); err != nil || d.next > last/steps+2 {
		t.Errorf("less than a step was appended, and %d are gone (%v)", d.next-1, err)
	}
	for range steps {
		if err := b.Appended(StepBytes, d.remove); err != nil {
			t.Fatal(err)
		}
	}
	if d.next != last+1 {
		t.Errorf("gone up to %d, want %d", d.next-1, last)
	}
	if err := b.Appended(1<<40, d.remove); err != nil || d.next != last+1 {
		t.Errorf("more was removed than was given: up to %d (%v)", d.next-1, err)
	}
}

func TestWhatIsLeftGoesWithTheNextBeginning(t *testing.T) {
	d := &deleted{t: t, next: 1}
	var b Beginning
	if err := b.Begin(1, 100, 1<<40, d.remove); err != nil || d.next != 2 {
		t.Fatalf("up to %d (%v)", d.next-1, err)
	}
	if err := b.Begin(2, 200, 1<<40, d.remove); err != nil || d.next != 102 {
		t.Errorf("gone up to %d, want all of the first beginning and one more (%v)", d.next-1, err)
	}
}

// TestWhatCouldNotBeRemovedIsTriedAgain: nothing is passed over.
func TestWhatCouldNotBeRemovedIsTriedAgain(t *testing.T) {
	full := errors.New("no space")
	d := &deleted{t: t, next: 1, fail: full}
	var b Beginning
	if err := b.Begin(1, 100, StepBytes, d.remove); !errors.Is(err, full) {
		t.Errorf("the failure is hidden: %v", err)
	}
	d.fail = nil
	if err := b.Appended(StepBytes, d.remove); err != nil || d.next != 101 {
		t.Errorf("gone up to %d, want 100 (%v)", d.next-1, err)
	}
}

func TestForgottenEntriesAreNotRemoved(t *testing.T) {
	d := &deleted{t: t, next: 1}
	var b Beginning
	if err := b.Begin(1, 100, 1<<40, d.remove); err != nil {
		t.Fatal(err)
	}
	b.Forget()
	if err := b.Appended(1<<40, d.remove); err != nil || d.next != 2 {
		t.Errorf("gone up to %d after they were forgotten (%v)", d.next-1, err)
	}
}

// TestEachStepGoesAsFarAsItSays: a step is the part of the entries that its bytes are of the limit, and one more; as many steps go at once
// as fit into what was appended, to the very last entry.
func TestEachStepGoesAsFarAsItSays(t *testing.T) {
	const first, last, step = 1001, 2000, 1 + 1000/4
	d := &deleted{t: t, next: first}
	var b Beginning
	if err := b.Begin(first, last, 4*StepBytes, d.remove); err != nil || d.next != first+step {
		t.Fatalf("the first step went up to %d, want %d (%v)", d.next-1, first+step-1, err)
	}
	if err := b.Appended(2*StepBytes, d.remove); err != nil || d.next != first+3*step {
		t.Errorf("two steps more went up to %d, want %d (%v)", d.next-1, first+3*step-1, err)
	}
	if err := b.Appended(StepBytes, d.remove); err != nil || d.next != last+1 {
		t.Errorf("the last step went up to %d, want %d (%v)", d.next-1, last, err)
	}
}

// TestTheLastEntryGoesToo, also if each step is one entry.
func TestTheLastEntryGoesToo(t *testing.T) {
	d := &deleted{t: t, next: 1}
	var b Beginning
	if err := b.Begin(1, 2, 1<<40, d.remove); err != nil || d.next != 2 {
		t.Fatalf("up to %d (%v)", d.next-1, err)
	}
	if err := b.Appended(StepBytes, d.remove); err != nil || d.next != 3 {
		t.Errorf("gone up to %d, want 2 (%v)", d.next-1, err)
	}
}

// TestAFailureIsToldWheneverItComes: with what was left of the last time, and while the log grows.
func TestAFailureIsToldWheneverItComes(t *testing.T) {
	full := errors.New("no space")
	d := &deleted{t: t, next: 1}
	var b Beginning
	if err := b.Begin(1, 100, 1<<40, d.remove); err != nil {
		t.Fatal(err)
	}
	d.fail = full
	if err := b.Appended(StepBytes, d.remove); !errors.Is(err, full) {
		t.Errorf("the failure is hidden: %v", err)
	}
	if err := b.Begin(2, 200, 1<<40, d.remove); !errors.Is(err, full) {
		t.Errorf("the failure with what was left is hidden: %v", err)
	}
	d.fail = nil
	if err := b.Begin(2, 200, 1<<40, d.remove); err != nil || d.next != 102 {
		t.Errorf("gone up to %d, want 101 (%v)", d.next-1, err)
	}
}

// TestALogBeginsAgainAfterItWasForgotten: nothing of the former one is waited for.
func TestALogBeginsAgainAfterItWasForgotten(t *testing.T) {
	d := &deleted{t: t, next: 1}
	var b Beginning
	b.Forget()
	if err := b.Begin(1, 10, StepBytes, d.remove); err != nil || d.next != 11 {
		t.Errorf("gone up to %d, want 10 (%v)", d.next-1, err)
	}
}
