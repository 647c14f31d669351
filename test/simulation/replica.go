package simulation

import (
	"bytes"
	"fmt"

	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/state"
)

// replica is one state machine and how far it has come.
type replica struct {
	world *World
	name  int
	state *state.State
	// applied is how many entries of the log it holds.
	applied int
	// lives counts its starts: a watch does not outlive one.
	lives    int
	diverged error
}

func (w *World) newReplica(name int) *replica {
	r := &replica{world: w, name: name}
	r.start()
	return r
}

func (r *replica) start() {
	r.lives++
	r.applied = 0
	r.state = state.New(state.Options{RingBytes: ringBytes, OnComparison: func(c state.Comparison) {
		if !c.Agrees() {
			r.diverged = fmt.Errorf("replica %d differs at revision %d", r.name, c.Revision)
		}
	}})
}

// deliver applies up to n more entries and returns the results of the last.
func (r *replica) deliver(n int) (last []command.Result, err error) {
	for ; n > 0 && r.applied < len(r.world.log); n-- {
		if last, err = r.apply(); err != nil {
			return nil, err
		}
	}
	return last, r.diverged
}

func (r *replica) apply() ([]command.Result, error) {
	w, e := r.world, r.world.log[r.applied]
	decoded, err := command.Unmarshal(e.bytes)
	if err != nil {
		return nil, err
	}
	index := uint64(r.applied + 1)
	results := r.state.Apply(index, e.term, decoded)
	r.applied++
	for i, result := range results {
		if got := (outcome{result.Code, result.Revision}); got != e.answers[i] {
			return nil, fmt.Errorf("replica %d, entry %d, command %d: %v, want %v (%s)", r.name, index, i, got, e.answers[i], result.Message)
		}
	}
	revision, hash := r.state.Hash()
	w.note("replica %d entry %d revision %d %x", r.name, index, revision, hash)
	first, known := w.hashes[index]
	if known && first != hash {
		return nil, fmt.Errorf("replica %d differs from another after entry %d", r.name, index)
	}
	w.hashes[index] = hash
	return results, nil
}

// compare checks a root against the model.
func (w *World) compare(root *state.Root, prefix string) error {
	want := w.model.at(root.Revision, prefix)
	found := 0
	for rec := range root.All(prefix) {
		o, ok := want[rec.Key]
		if !ok || o.mod != rec.ModRevision || o.value != string(rec.Value) || o.uid != rec.UID {
			return fmt.Errorf("%s at revision %d is not as the model has it: %+v, want %+v", rec.Key, root.Revision, rec, o)
		}
		found++
	}
	if found != len(want) {
		return fmt.Errorf("%d objects under %q at revision %d, want %d", found, prefix, root.Revision, len(want))
	}
	return nil
}

// writing is a snapshot that was taken and not yet written.
type writing struct {
	snapshot *state.Snapshot
	applied  int
}

// image is a snapshot on disk.
type image struct {
	bytes   []byte
	applied int
}

func (w *World) beginSnapshot() error {
	r := w.anyReplica()
	w.writing = append(w.writing, writing{r.state.Snapshot(), r.applied})
	return nil
}

// endSnapshot writes what was taken earlier: what came since must not be in it,
// and another replica's snapshot at the same entry has the same bytes.
func (w *World) endSnapshot() error {
	if len(w.writing) == 0 {
		return nil
	}
	s := w.writing[0]
	w.writing = w.writing[1:]
	var b bytes.Buffer
	if _, err := s.snapshot.WriteTo(&b); err != nil {
		return err
	}
	w.note("snapshot at %d, %d bytes", s.applied, b.Len())
	for _, other := range w.images {
		if other.applied == s.applied && !bytes.Equal(other.bytes, b.Bytes()) {
			return fmt.Errorf("two snapshots at entry %d differ", s.applied)
		}
	}
	w.did.Snapshots++
	w.images = append(w.images, image{b.Bytes(), s.applied})
	if len(w.images) > snapshotsKept {
		w.images = w.images[1:]
	}
	return nil
}

// restore installs a snapshot on a replica behind it, whose watches go on, or
// starts a replica anew from its disk.
func (w *World) restore() error {
	r := w.anyReplica()
	if len(w.images) == 0 {
		return nil
	}
	from := w.images[w.random.IntN(len(w.images))]
	if from.applied <= r.applied {
		r.start()
	}
	if err := r.state.Restore(bytes.NewReader(from.bytes)); err != nil {
		return fmt.Errorf("restoring the snapshot of entry %d: %w", from.applied, err)
	}
	r.applied = from.applied
	w.did.Restores++
	w.note("replica %d restored to %d, life %d", r.name, r.applied, r.lives)
	if _, hash := r.state.Hash(); from.applied > 0 && hash != w.hashes[uint64(from.applied)] {
		return fmt.Errorf("the snapshot of entry %d restores to another state", from.applied)
	}
	return w.compare(r.state.Root(), "")
}
