package simulation

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"math/rand/v2"

	"github.com/setpoint-io/setpoint/raftstore/command"
)

const (
	replicaCount  = 3
	proposerCount = 4
	clientCount   = 4
	// ringBytes is small, so that histories are overtaken now and then.
	ringBytes = 24 << 10
	// snapshotsKept is how many written snapshots may be restored.
	snapshotsKept = 3
)

// World is one run. Nothing in it is random but by its seed.
type World struct {
	random *rand.Rand
	trace  hash.Hash
	model  *model

	log      []entry
	term     uint64
	replicas [replicaCount]*replica
	// hashes are the state after each entry, as the first replica found it.
	hashes map[uint64][command.HashBytes]byte

	writing []writing
	images  []image

	proposers [proposerCount]*proposer
	clients   [clientCount]*client
	cuts      []*cut
	tables    *tables
	did       Summary
	// depth keeps what happens during a proposal from proposing through a table.
	depth int
}

// entry is one committed entry of the log, its index one more than its place.
type entry struct {
	term    uint64
	bytes   []byte
	answers []outcome
}

// Summary is what a run did, so that a test notices when it does nothing.
type Summary struct {
	// Trace is a hash over every step.
	Trace [sha256.Size]byte
	// Entries were committed, Retries of their commands had been before. Events
	// were seen by clients, who moved to another replica and listed anew so often.
	Entries, Retries, Events, Moves, Relists int
	// Snapshots were written, Restores made of them; Cuts were lists whose last page
	// was read, Increments acknowledged through tables.
	Snapshots, Restores, Cuts, Increments int
}

// Run plays a seed for a number of steps, then heals everything and judges the
// end.
func Run(seed uint64, steps int) (Summary, error) {
	w := newWorld(seed)
	for step := range steps {
		if err := w.step(); err != nil {
			return Summary{}, fmt.Errorf("seed %d, step %d: %w", seed, step, err)
		}
	}
	if err := w.heal(); err != nil {
		return Summary{}, fmt.Errorf("seed %d, at the end: %w", seed, err)
	}
	w.did.Entries = len(w.log)
	w.did.Trace = [sha256.Size]byte(w.trace.Sum(nil))
	return w.did, nil
}

func newWorld(seed uint64) *World {
	w := &World{
		random: rand.New(rand.NewPCG(seed, 1)), trace: sha256.New(), model: newModel(), term: 1,
		hashes: map[uint64][command.HashBytes]byte{},
	}
	for i := range w.replicas {
		w.replicas[i] = w.newReplica(i)
	}
	for i := range w.proposers {
		w.proposers[i] = &proposer{session: w.openSession()}
	}
	for i := range w.clients {
		w.clients[i] = &client{prefix: prefixes[i%len(prefixes)], view: map[string]uint64{}}
	}
	w.tables = newTables(w)
	return w
}

// note adds to the trace.
func (w *World) note(format string, args ...any) { fmt.Fprintf(w.trace, format+"\n", args...) }

// chance is true once in n times.
func (w *World) chance(n int) bool { return w.random.IntN(n) == 0 }

func (w *World) anyReplica() *replica { return w.replicas[w.random.IntN(replicaCount)] }

// step does one thing. Weights are the repetitions.
func (w *World) step() error {
	kinds := []func() error{
		w.propose, w.propose, w.propose, w.propose, w.propose, w.propose,
		w.deliverSome, w.deliverSome, w.deliverSome, w.deliverSome,
		w.follow, w.follow, w.follow, w.follow, w.follow,
		w.beginPage, w.nextPage, w.nextPage,
		w.beginSnapshot, w.endSnapshot, w.restore, w.rare,
	}
	if w.depth == 0 {
		kinds = append(kinds, w.tables.increment, w.tables.increment, w.tables.read, w.tables.page)
	}
	kind := w.random.IntN(len(kinds))
	w.note("step %d", kind)
	return kinds[kind]()
}

// rare is what happens once in a long while.
func (w *World) rare() error {
	switch w.random.IntN(8) {
	case 0, 1, 2:
		w.term++
		w.note("term %d", w.term)
	case 3, 4, 5:
		revision, hash := w.anyReplica().state.Hash()
		w.commit(command.Command{Ops: []command.Op{{Kind: command.StateHash, Revision: revision, Value: hash[:]}}})
	case 6:
		w.commit(command.Command{Ops: []command.Op{{Kind: command.BumpRevision, Revision: uint64(1 + w.random.IntN(50))}}})
	}
	return nil
}

// commit puts an entry into the log and asks the model what it should do.
func (w *World) commit(commands ...command.Command) []outcome {
	index := uint64(len(w.log) + 1)
	packed := command.Entry{FormatVersion: command.FormatVersion, Term: w.term, Commands: commands}
	e := entry{term: w.term, bytes: packed.Marshal()}
	for i := range commands {
		e.answers = append(e.answers, w.model.apply(index, w.term, &commands[i]))
	}
	w.log = append(w.log, e)
	w.note("entry %d %x %v", index, sha256.Sum256(e.bytes), e.answers)
	return e.answers
}

func (w *World) openSession() uint64 {
	return w.commit(command.Command{Ops: []command.Op{{Kind: command.OpenSession}}})[0].revision
}

func (w *World) deliverSome() error {
	_, err := w.anyReplica().deliver(w.random.IntN(6))
	return err
}

// heal delivers everything everywhere and judges what is left.
func (w *World) heal() error {
	var errs []error
	for _, r := range w.replicas {
		_, err := r.deliver(len(w.log))
		errs = append(errs, err, w.compare(r.state.Root(), ""))
	}
	for _, c := range w.clients {
		errs = append(errs, w.settle(c))
	}
	return errors.Join(append(errs, w.tables.judge())...)
}
