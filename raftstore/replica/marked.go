package replica

import (
	"sync"

	"github.com/setpoint-io/setpoint/raftstore/replica/marks"
)

// saveMark writes a new marker and remembers it. A disk that hangs meanwhile stops the
// replica as one that hangs at a log entry: the state machine waits for some markers.
func (r *Replica) saveMark(m *marks.Marker) error {
	if err := r.log.guard.write("state marker", func() error { return r.cfg.Storage.marks.Save(m) }); err != nil {
		return err
	}
	r.remember(m)
	return nil
}

func (r *Replica) remember(m *marks.Marker) {
	r.markMu.Lock()
	defer r.markMu.Unlock()
	r.mark = m
}

// marked returns the marker, never nil once Open has returned. It is not to be
// changed.
func (r *Replica) marked() *marks.Marker {
	r.markMu.Lock()
	defer r.markMu.Unlock()
	return r.mark
}

// saveHeld says that from now on losing the log must be noticed.
func (r *Replica) saveHeld() error {
	r.changeMu.Lock()
	defer r.changeMu.Unlock()
	return r.saveMark(r.marked().With(marks.Held))
}

// markOnWrite saves the marker after the first log entry of a new replica and
// before that write is reported done: from then on, losing the log must be noticed.
type markOnWrite struct {
	mu   sync.Mutex
	done bool
	save func() error
}

func (m *markOnWrite) wrote() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.done {
		return nil
	}
	if err := m.save(); err != nil {
		return err
	}
	m.done = true
	return nil
}
