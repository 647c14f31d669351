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
