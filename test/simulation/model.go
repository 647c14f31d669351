package simulation

import (
	"maps"
	"slices"
	"strings"

	"github.com/setpoint-io/setpoint/raftstore/command"
)

// model is what the state should be: every change ever made, in order.
type model struct {
	revision uint64
	objects  map[string]object
	history  []change
	sessions map[uint64]map[uint64]outcome
}

// object is one key's content.
type object struct {
	uid, value string
	mod        uint64
}

// change is one revision. now is nil for a deletion, before for a new key.
type change struct {
	revision, index uint64
	key             string
	now, before     *object
}

// outcome is what a command is answered.
type outcome struct {
	code     command.Code
	revision uint64
}

func newModel() *model {
	return &model{objects: map[string]object{}, sessions: map[uint64]map[uint64]outcome{}}
}

// apply judges one command of the entry at index.
func (m *model) apply(index, term uint64, c *command.Command) outcome {
	if c.Session == 0 {
		return m.judge(index, term, c)
	}
	session, open := m.sessions[c.Session]
	if !open {
		return outcome{command.SessionUnknown, m.revision}
	}
	if past, ok := session[c.Sequence]; ok {
		return past
	}
	session[c.Sequence] = m.judge(index, term, c)
	return session[c.Sequence]
}

func (m *model) judge(index, term uint64, c *command.Command) outcome {
	if c.Fence != 0 && c.Fence != term {
		return outcome{command.FenceStale, m.revision}
	}
	switch c.Ops[0].Kind {
	case command.OpenSession:
		m.sessions[index] = map[uint64]outcome{}
		return outcome{command.OK, index}
	case command.StateHash:
		return outcome{command.OK, m.revision}
	case command.BumpRevision:
		m.revision += c.Ops[0].Revision
		return outcome{command.OK, m.revision}
	}
	for i := range c.Ops {
		if !m.holds(&c.Ops[i]) {
			return outcome{command.PreconditionFailed, m.revision}
		}
	}
	for i := range c.Ops {
		m.perform(index, &c.Ops[i])
	}
	return outcome{command.OK, m.revision}
}

func (m *model) holds(op *command.Op) bool {
	o, found := m.objects[op.Key]
	same := found && (op.UID == "" || op.UID == o.uid)
	switch op.Precondition {
	case command.Absent:
		return !found
	case command.Present:
		return same
	case command.AtRevision:
		return same && o.mod == op.Revision
	}
	return true
}

func (m *model) perform(index uint64, op *command.Op) {
	before, found := m.objects[op.Key]
	if op.Kind == command.Check || op.Kind == command.Delete && !found {
		return
	}
	m.revision++
	c := change{revision: m.revision, index: index, key: op.Key}
	if found {
		c.before = &before
	}
	if op.Kind == command.Put {
		c.now = &object{uid: op.UID, value: string(op.Value), mod: m.revision}
		m.objects[op.Key] = *c.now
	} else {
		delete(m.objects, op.Key)
	}
	m.history = append(m.history, c)
}

// at returns the keys with the prefix at a revision, with their objects.
func (m *model) at(revision uint64, prefix string) map[string]object {
	all := map[string]object{}
	for _, c := range m.history {
		switch {
		case c.revision > revision:
			return all
		case !strings.HasPrefix(c.key, prefix):
		case c.now == nil:
			delete(all, c.key)
		default:
			all[c.key] = *c.now
		}
	}
	return all
}

// between returns the changes under the prefix after one revision and up to
// another.
func (m *model) between(after, last uint64, prefix string) []change {
	var found []change
	for _, c := range m.history {
		if c.revision > after && c.revision <= last && strings.HasPrefix(c.key, prefix) {
			found = append(found, c)
		}
	}
	return found
}

// entryEnd returns the last revision that the entry of a revision made.
func (m *model) entryEnd(revision uint64) uint64 {
	end := revision
	for _, c := range m.history {
		if c.revision >= revision && c.index == m.indexOf(revision) {
			end = c.revision
		}
	}
	return end
}

func (m *model) indexOf(revision uint64) uint64 {
	i, found := slices.BinarySearchFunc(m.history, revision, func(c change, r uint64) int { return int(c.revision) - int(r) })
	if !found {
		return 0
	}
	return m.history[i].index
}

// keys returns the keys in order.
func keys[V any](all map[string]V) []string { return slices.Sorted(maps.Keys(all)) }
