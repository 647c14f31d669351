package replicas

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/setpoint-io/setpoint/raftstore"
	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/watch"
)

// change is what one revision did.
type change struct {
	key, value string
	kind       watch.EventType
}

// readDone is a read that was answered, writeDone a write that was acknowledged. floor is the highest revision that anybody had been
// told when the call began.
type readDone struct {
	client          int
	floor, revision uint64
	key, value      string
}

type writeDone struct {
	client          int
	floor, revision uint64
	key, value      string
}

// sight is what the judge last saw of a server.
type sight struct {
	lives           int
	index, revision uint64
	member          string
	term            uint64
	votes           map[uint64]string
}

// judge holds the world to what raft and the store promise. Clients tell it what they were told; step looks at everything else.
type judge struct {
	world *World
	// awaited says what a wait was for.
	awaited string

	mu     sync.Mutex
	failed error
	told   uint64
	// reads, writes and watched wait for the next step.
	reads   []readDone
	writes  []writeDone
	watched []watchedEvent

	// history is what each revision did; names tells at which revision a value was written; byKey are the revisions of a key.
	history  map[uint64]change
	names    map[string]uint64
	byKey    map[string][]uint64
	refused  map[string]any
	newest   uint64
	hashes   map[uint64][command.HashBytes]byte
	sights   map[*server]*sight
	leads    map[uint64]string
	watchers map[int]uint64
	// life is that of the cluster.
	life  string
	acked map[uint64]writeDone
	// missed is the revision up to which something may have happened that is not in history: a snapshot covered it.
	missed uint64
	// orphans are servers that lost their disks, all but one, and must not found another cluster.
	orphans []*server
	// former is a server that was revived with the directory of formerLife, while the others are in the next; nil if there is none.
	former     *server
	formerLife string
}

// watchedEvent is an event that a watch delivered; with compacted the watch began anew at the revision.
type watchedEvent struct {
	watcher   int
	event     watch.Event
	compacted bool
}

func newJudge(w *World) *judge {
	return &judge{
		world: w, history: map[uint64]change{}, names: map[string]uint64{}, byKey: map[string][]uint64{}, refused: map[string]any{},
		hashes: map[uint64][command.HashBytes]byte{}, sights: map[*server]*sight{}, leads: map[uint64]string{}, watchers: map[int]uint64{},
		acked: map[uint64]writeDone{},
	}
}

// fail keeps the first violation.
func (j *judge) fail(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.broken(format, args...)
}

func (j *judge) broken(format string, args ...any) {
	if j.failed == nil {
		j.failed = fmt.Errorf(format, args...)
	}
}

func (j *judge) floor() uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.told
}

func (j *judge) read(r readDone) {
	j.world.note("read %+v", r)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.world.did.Reads++
	if r.revision < r.floor {
		j.broken("client %d read revision %d after somebody was told %d", r.client, r.revision, r.floor)
	}
	j.told = max(j.told, r.revision)
	j.reads = append(j.reads, r)
}

func (j *judge) wrote(d writeDone) {
	j.world.note("wrote %+v", d)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.world.did.Writes++
	if d.revision <= d.floor {
		j.broken("client %d wrote %s at revision %d after somebody was told %d", d.client, d.value, d.revision, d.floor)
	}
	j.told = max(j.told, d.revision)
	j.writes = append(j.writes, d)
}

// never notes that a write surely had no effect.
func (j *judge) never(value string, why any) {
	j.world.note("refused %s %v", value, why)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.refused[value] = why
}

func (j *judge) unknown() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.world.did.Unknown++
}

func (j *judge) saw(watcher int, e watch.Event) {
	j.world.note("saw %d %d", watcher, e.Revision)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.watched = append(j.watched, watchedEvent{watcher: watcher, event: e})
}

func (j *judge) skipped(watcher int, revision uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.watched = append(j.watched, watchedEvent{watcher: watcher, event: watch.Event{Revision: revision}, compacted: true})
}

// step looks at everything, while everything is idle.
func (j *judge) step() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, s := range j.world.servers {
		j.look(s)
	}
	j.judgeWrites()
	j.judgeReads()
	j.judgeWatches()
	j.judgeOrphans()
	return j.failed
}

func (j *judge) look(s *server) {
	at := j.sights[s]
	if at == nil {
		at = &sight{votes: map[uint64]string{}}
		j.sights[s] = at
	}
	j.lookAtDisk(s, at)
	if s == j.former {
		if store := s.running(); store != nil {
			j.lookAtFormer(s, store)
		}
		return
	}
	if err := s.stopped(); err != nil && !j.world.nemesis.excuses(s, err) {
		j.broken("%s stopped itself: %v", s.name, err)
	}
	store := s.running()
	if store == nil {
		return
	}
	if at.lives != s.lives {
		at.lives, at.index, at.revision = s.lives, 0, 0
	}
	j.lookAtState(s, store, at)
	j.lookAtLead(s, store)
}

// lookAtDisk checks that terms and votes on disk never go back, that a vote is of a term that is there, and that there is one in a term.
func (j *judge) lookAtDisk(s *server, at *sight) {
	c := s.disk.Look(false)
	if c.MemberID != at.member {
		at.member, at.term, at.votes = c.MemberID, 0, map[uint64]string{}
	}
	if c.Term < at.term {
		j.broken("%s went from term %d back to %d on its disk", s.name, at.term, c.Term)
	}
	if c.VoteTerm > c.Term {
		j.broken("%s has a vote in term %d on its disk, and term %d", s.name, c.VoteTerm, c.Term)
	}
	at.term = c.Term
	if c.Vote == "" || c.VoteTerm == 0 {
		return
	}
	if before, ok := at.votes[c.VoteTerm]; ok && before != c.Vote {
		j.broken("%s voted for %s and for %s in term %d", s.name, before, c.Vote, c.VoteTerm)
	}
	at.votes[c.VoteTerm] = c.Vote
}

// lookAtState checks that the same entries made the same states, and writes down what they did.
func (j *judge) lookAtState(s *server, store *raftstore.Store, at *sight) {
	root := store.Root()
	if root.Index == at.index {
		return
	}
	if root.Index < at.index || root.Revision < at.revision {
		j.broken("%s went from entry %d, revision %d back to %d, %d", s.name, at.index, at.revision, root.Index, root.Revision)
	}
	revision, hash := store.StateHash()
	if before, ok := j.hashes[revision]; ok && before != hash {
		j.broken("%s has another state at revision %d than others had", s.name, revision)
	}
	j.hashes[revision] = hash
	changes, err := store.Since(at.revision)
	if err == nil {
		for _, e := range changes {
			j.happened(s, e)
		}
	} else if errors.Is(err, watch.ErrCompacted) {
		j.missed = max(j.missed, root.Revision)
	} else {
		j.broken("%s does not tell what happened since %d: %v", s.name, at.revision, err)
	}
	at.index, at.revision = root.Index, root.Revision
	j.newest = max(j.newest, root.Revision)
	j.judgeLife(s, root.Life)
}

// judgeLife checks that one cluster was founded.
func (j *judge) judgeLife(s *server, life string) {
	switch {
	case life == "":
	case j.life == "":
		j.life = life
	case j.life != life:
		j.broken("%s is in a cluster with the life %s, others in one with %s", s.name, life, j.life)
	}
}

// happened checks that a revision is the same change everywhere, and that nothing took effect twice, or though it was refused.
func (j *judge) happened(s *server, e watch.Event) {
	c := change{key: e.Key, kind: e.Type}
	if e.Record != nil {
		c.value = strings.TrimSpace(string(e.Record.Value))
	}
	if before, ok := j.history[e.Revision]; ok {
		if before != c {
			j.broken("%s has %+v at revision %d, others %+v", s.name, c, e.Revision, before)
		}
		return
	}
	j.history[e.Revision] = c
	if !strings.HasPrefix(c.key, prefix) {
		return
	}
	j.byKey[c.key] = append(j.byKey[c.key], e.Revision)
	if other, twice := j.names[c.value]; twice {
		j.broken("%s took effect at revision %d and at %d", c.value, other, e.Revision)
	}
	j.names[c.value] = e.Revision
	if why, ok := j.refused[c.value]; ok {
		j.broken("%s took effect at revision %d and was refused: %v", c.value, e.Revision, why)
	}
	j.world.note("happened %d %s", e.Revision, c.value)
}

// judgeWrites checks that what was acknowledged is what happened, once its revision is known.
func (j *judge) judgeWrites() {
	for _, d := range j.writes {
		if other, ok := j.acked[d.revision]; ok {
			j.broken("revision %d was told %s and %s", d.revision, other.value, d.value)
		}
		j.acked[d.revision] = d
		if c, ok := j.history[d.revision]; ok && (c.key != d.key || c.value != d.value) {
			j.broken("revision %d was told as %s = %s, and is %+v", d.revision, d.key, d.value, c)
		}
	}
	j.writes = nil
}

// judgeReads checks that a read is the state of its revision.
func (j *judge) judgeReads() {
	var later []readDone
	for _, r := range j.reads {
		switch want, known := j.valueAt(r.key, r.revision); {
		case r.revision > j.newest:
			later = append(later, r)
		case known && r.value != want:
			j.broken("client %d read %q of %s at revision %d, and it was %q", r.client, r.value, r.key, r.revision, want)
		}
	}
	j.reads = later
}

// valueAt is what a key was at a revision.
func (j *judge) valueAt(key string, revision uint64) (value string, known bool) {
	var last uint64
	for _, changed := range j.byKey[key] {
		if changed <= revision {
			last = max(last, changed)
		}
	}
	for r := last + 1; r <= min(revision, j.missed); r++ {
		if _, ok := j.history[r]; !ok {
			return "", false
		}
	}
	return j.history[last].value, true
}

// judgeWatches checks that a watch tells each change once and in order.
func (j *judge) judgeWatches() {
	var later []watchedEvent
	for _, seen := range j.watched {
		from := j.watchers[seen.watcher]
		to := seen.event.Revision
		if to > j.newest { // the server that told it has ended since
			later = append(later, seen)
			continue
		}
		j.watchers[seen.watcher] = to
		if seen.compacted {
			continue
		}
		j.world.did.Events++
		if to <= from {
			j.broken("watch %d told revision %d after %d", seen.watcher, to, from)
		}
		for revision := from + 1; revision < to; revision++ {
			if c, ok := j.history[revision]; ok && strings.HasPrefix(c.key, prefix) {
				j.broken("watch %d did not tell revision %d, between %d and %d", seen.watcher, revision, from, to)
			}
		}
		if c, ok := j.history[to]; ok && c.key != seen.event.Key {
			j.broken("watch %d told %s at revision %d, and it was %+v", seen.watcher, seen.event.Key, to, c)
		}
	}
	j.watched = later
}

// allVote reports whether the members are those that should be, all of them with a vote.
func (j *judge) allVote(store *raftstore.Store) bool {
	members := store.Servers()
	for _, m := range members {
		if !m.Voter {
			return false
		}
	}
	return len(members) == len(j.world.members())
}

func (j *judge) writesTold() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.world.did.Writes
}

func (j *judge) setOrphans(servers []*server) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.orphans = servers
}

func (j *judge) judgeOrphans() {
	for _, s := range j.orphans {
		if store := s.running(); store != nil && store.Leadership().Term > 0 {
			j.broken("%s lost its disk and takes part in a cluster, which has no majority with data", s.name)
		}
	}
}

// leaders is how many leaders there have been.
func (j *judge) leaders() int {
	j.awaited = "a leader"
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.leads)
}

// healed reports whether everything runs and has all that was told.
func (j *judge) healed() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	lead := false
	if j.world.nemesis.changing.Load() {
		j.awaited = "the change of members"
		return false
	}
	for _, s := range j.world.members() {
		store := s.running()
		if store == nil {
			j.awaited = s.name + " runs"
			return false
		}
		if !store.Leadership().Ready {
			j.awaited = s.name + " has a leader"
			return false
		}
		lead = lead || store.Leadership().Leader
		if !j.allVote(store) {
			j.awaited = "all members vote, as " + s.name + " knows them"
			return false
		}
		if store.Root().Revision < j.told {
			j.awaited = fmt.Sprintf("%s at revision %d has what was told up to %d", s.name, store.Root().Revision, j.told)
			return false
		}
	}
	j.awaited = "a leader"
	return lead
}

// last judges the end: what was acknowledged is there, and all replicas are the same.
func (j *judge) last() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	for revision, d := range j.acked {
		if at, ok := j.names[d.value]; !ok || at != revision {
			j.broken("%s was acknowledged at revision %d and is lost", d.value, revision)
		}
	}
	for _, s := range j.world.members() {
		store := s.running()
		if store == nil {
			j.broken("%s does not run at the end", s.name)
		} else if root := store.Root(); root.Revision != j.newest {
			j.broken("%s is at revision %d at the end, others at %d", s.name, root.Revision, j.newest)
		}
		j.world.did.Snapshots += min(1, int(s.disk.Look(false).SnapshotIndex))
	}
	return j.failed
}
