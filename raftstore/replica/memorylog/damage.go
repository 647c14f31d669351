package memorylog

import (
	"bytes"

	"github.com/hashicorp/raft"

	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/replica/entrysum"
)

// Alter changes the value of the object that was last put under the key in the log, and
// the entry's checksum, as nothing does but a bug: a replica that starts on it has another
// state. It reports whether there was such an entry.
func (l *Log) Alter(key string) bool {
	for i := l.Last; i >= l.First && i > 0; i-- {
		changed := *l.Entries[i]
		if entrysum.Unseal(&changed) && changed.Type == raft.LogCommand && alter(&changed, key) {
			l.Entries[i] = entrysum.Seal(&changed)
			return true
		}
	}
	return false
}

func alter(l *raft.Log, key string) (done bool) {
	entry, err := command.Unmarshal(l.Data)
	if err != nil {
		return false
	}
	for _, c := range entry.Commands {
		for i := range c.Ops {
			if op := &c.Ops[i]; op.Kind == command.Put && op.Key == key {
				op.Value, done = append(bytes.Clone(op.Value), '!'), true
			}
		}
	}
	l.Data = entry.Marshal()
	return done
}

// FlipBit changes one bit of a log entry on the disk, somewhere in the middle, and
// reports whether there was one.
func (l *Log) FlipBit() bool {
	for i := l.Last; i > l.First; i-- {
		if e := l.Entries[i]; len(e.Data) > 0 {
			changed := *e
			changed.Data = bytes.Clone(e.Data)
			changed.Data[len(changed.Data)/2] ^= 1
			l.Entries[i] = &changed
			return true
		}
	}
	return false
}
