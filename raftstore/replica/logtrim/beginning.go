package logtrim

import "sync"

// SliceEntries bounds one deletion, so that it delays an append by little: the
// database has one writer at a time.
const SliceEntries = 512

// StepBytes of new log make room for as much of the old.
const StepBytes = 2 << 20

// Beginning deletes the beginning of the log step by step, as the log grows. Done at
// once, after a snapshot, it would leave tens of thousands of free pages, and the
// database writes the list of them with every commit: eight bytes for each, far
// more than the commit itself. The zero value has nothing to delete.
type Beginning struct {
	mu sync.Mutex
	// from to to are the entries that may go, perStep of them at a time.
	from, to, perStep uint64
	// grown is how many bytes were appended since the last step.
	grown int64
}

// Begin deletes what is left of the last time, and the first steps up to an index;
// the rest takes as long as the log grows by limit bytes.
func (t *Beginning) Begin(first, to uint64, limit int64, remove func(from, to uint64) error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for t.from = max(t.from, first); t.from <= t.to; {
		if err := t.step(remove); err != nil {
			return err
		}
	}
	entries := to + 1 - min(t.from, to+1)
	t.to, t.grown = to, 0
	t.perStep = 1 + entries*StepBytes/uint64(limit)
	return t.step(remove)
}

// Appended deletes as much as size bytes more of log need.
func (t *Beginning) Appended(size int64, remove func(from, to uint64) error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.from > t.to || t.perStep == 0 {
		return nil
	}
	for t.grown += size; t.grown >= StepBytes; t.grown -= StepBytes {
		if err := t.step(remove); err != nil {
			return err
		}
	}
	return nil
}

func (t *Beginning) step(remove func(from, to uint64) error) error {
	for left := t.perStep; left > 0 && t.from <= t.to; {
		to := min(t.to, t.from+min(left, SliceEntries)-1)
		if err := remove(t.from, to); err != nil {
			return err
		}
		left -= to + 1 - t.from
		t.from = to + 1
	}
	return nil
}

// Forget drops what is left: the log is deleted by other means.
func (t *Beginning) Forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.from, t.to, t.perStep = 1, 0, 0
}
