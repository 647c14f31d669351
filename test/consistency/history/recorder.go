package history

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"sync"
	"time"
)

// A Clock tells how long a run has lasted.
type Clock struct{ start time.Time }

// NewClock starts at zero.
func NewClock() Clock { return Clock{time.Now()} }

// Now returns nanoseconds since the start; it never goes back.
func (c Clock) Now() int64 { return int64(time.Since(c.start)) }

// A Recorder collects the operations of one epoch.
type Recorder struct {
	mu      sync.Mutex
	ops     []Op
	streams []*Stream
}

// Add records a finished operation.
func (r *Recorder) Add(op Op) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ops = append(r.ops, op)
}

// Len is the number of operations so far.
func (r *Recorder) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.ops)
}

// Stream adds a stream. Its events belong to its watcher alone until that has ended.
func (r *Recorder) Stream(name, selector string) *Stream {
	stream := &Stream{Name: name, Selector: selector}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.streams = append(r.streams, stream)
	return stream
}

// Epoch returns all of it, when clients and watchers have ended.
func (r *Recorder) Epoch(namespace string, start, end uint64) *Epoch {
	r.mu.Lock()
	defer r.mu.Unlock()
	return &Epoch{Namespace: namespace, Start: start, End: end, Ops: r.ops, Streams: r.streams}
}

// line is one line of a kept history: one field is set.
type line struct {
	Epoch  *Epoch  `json:"epoch,omitempty"` // without what has lines of its own
	Op     *Op     `json:"op,omitempty"`
	Stream *Stream `json:"stream,omitempty"`
	Fault  *Fault  `json:"fault,omitempty"`
}

// Save writes an epoch to a new file, one JSON object a line.
func (e *Epoch) Save(path string) error {
	return save(path, func(write func(line) error) error {
		err := write(line{Epoch: &Epoch{Namespace: e.Namespace, Start: e.Start, End: e.End}})
		for i := range e.Ops {
			err = errors.Join(err, write(line{Op: &e.Ops[i]}))
		}
		for _, stream := range e.Streams {
			err = errors.Join(err, write(line{Stream: stream}))
		}
		return err
	})
}

// SaveFaults writes faults to a new file, one JSON object a line.
func SaveFaults(path string, faults []Fault) error {
	return save(path, func(write func(line) error) error {
		var err error
		for i := range faults {
			err = errors.Join(err, write(line{Fault: &faults[i]}))
		}
		return err
	})
}

func save(path string, fill func(write func(line) error) error) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	buffer := bufio.NewWriter(file)
	encoder := json.NewEncoder(buffer)
	err = fill(func(l line) error { return encoder.Encode(l) })
	return errors.Join(err, buffer.Flush(), file.Close())
}

// Load reads what Save wrote.
func Load(path string) (*Epoch, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	epoch := &Epoch{}
	for decoder := json.NewDecoder(bufio.NewReader(file)); decoder.More(); {
		var l line
		if err := decoder.Decode(&l); err != nil {
			return nil, err
		}
		epoch.take(l)
	}
	return epoch, nil
}

func (e *Epoch) take(l line) {
	switch {
	case l.Epoch != nil:
		e.Namespace, e.Start, e.End = l.Epoch.Namespace, l.Epoch.Start, l.Epoch.End
	case l.Op != nil:
		e.Ops = append(e.Ops, *l.Op)
	case l.Stream != nil:
		e.Streams = append(e.Streams, l.Stream)
	}
}
