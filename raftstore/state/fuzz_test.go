package state_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/state"
	"github.com/setpoint-io/setpoint/raftstore/wire"
)

// FuzzApply applies whatever decodes as an entry, twice on equal states: it must
// not panic, and both must end equal.
func FuzzApply(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 6))
	for range 20 {
		e := command.Entry{FormatVersion: command.FormatVersion, Term: 5}
		for range 5 {
			e.Commands = append(e.Commands, randomCommand(r, 10))
		}
		raw := e.Marshal()
		f.Add(raw[:len(raw)-4])
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		sum := wire.Checksum(body)
		e, err := command.Unmarshal(append(body[:len(body):len(body)], byte(sum), byte(sum>>8), byte(sum>>16), byte(sum>>24)))
		if err != nil {
			return
		}
		a, _ := randomLog(1, 20)
		b, _ := randomLog(1, 20)
		if diff := cmp.Diff(a.apply(e.Commands...), b.apply(e.Commands...)); diff != "" {
			t.Fatal(diff)
		}
		wantSame(t, a.State, b.State)
		wantSame(t, a.State, restored(t, snapshotOf(t, a.State)))
	})
}

// FuzzRestore gives arbitrary sections, behind right checksums, to the reader of
// snapshots: it may refuse them, not panic.
func FuzzRestore(f *testing.F) {
	l, _ := randomLog(2, 10)
	f.Add(snapshotOf(f, l.State))
	f.Fuzz(func(t *testing.T, data []byte) {
		s := state.New(state.Options{})
		_ = s.Restore(bytes.NewReader(data))
		_ = s.Restore(bytes.NewReader(withChecksums(data)))
	})
}

// withChecksums puts the right checksum into every block, as far as the lengths
// lead.
func withChecksums(data []byte) []byte {
	data = bytes.Clone(data)
	for rest := data; len(rest) > 8; {
		size := int(rest[0]) | int(rest[1])<<8 | int(rest[2])<<16 | int(rest[3])<<24
		if size > len(rest)-8 {
			break
		}
		sum := wire.Checksum(rest[:4], rest[8:8+size])
		copy(rest[4:], []byte{byte(sum), byte(sum >> 8), byte(sum >> 16), byte(sum >> 24)})
		rest = rest[8+size:]
	}
	return data
}
