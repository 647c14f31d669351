package backup_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-io/setpoint/raftstore/backup"
	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/state"
	"github.com/setpoint-io/setpoint/raftstore/wire"
)

// filled returns a state with n objects of the given size, a session and history.
func filled(n, valueBytes int) *state.State {
	s := state.New(state.Options{})
	one := func(op command.Op) {
		s.Apply(s.Root().Index+1, 3, &command.Entry{Commands: []command.Command{{Ops: []command.Op{op}}}})
	}
	one(command.Op{Kind: command.SetClusterID, Value: []byte("c1")})
	one(command.Op{Kind: command.OpenSession})
	value := make([]byte, valueBytes)
	source := rand.NewChaCha8([32]byte{1})
	for i := range n {
		_, _ = source.Read(value)
		one(command.Op{Kind: command.Put, Key: fmt.Sprintf("/k/%06d", i), UID: fmt.Sprint("u", i), Value: value})
	}
	return s
}

func archive(t *testing.T, root *state.Root) []byte {
	t.Helper()
	var out bytes.Buffer
	if _, err := backup.Write(&out, root, backup.Header{Term: 3, Time: time.UnixMilli(1_700_000_000_123)}); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestRoundTrip(t *testing.T) {
	for _, c := range []struct{ objects, valueBytes int }{{0, 0}, {1, 10}, {500, 100}, {9, 1 << 20}} {
		t.Run(fmt.Sprintf("%d of %d bytes", c.objects, c.valueBytes), func(t *testing.T) {
			root := filled(c.objects, c.valueBytes).Root()
			data := archive(t, root)
			// A source that gives one byte at a time must not matter.
			checked, err := backup.Check(iotest.HalfReader(bytes.NewReader(data)), nil)
			if err != nil {
				t.Fatal(err)
			}
			loaded, report, err := backup.Load(bytes.NewReader(data))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(checked, report); diff != "" {
				t.Errorf("Check and Load differ: %s", diff)
			}
			if report.ArchiveBytes != int64(len(data)) || report.Revision != root.Revision || report.Objects != int64(c.objects) ||
				report.ClusterID != "c1" || report.Term != 3 || report.Time.UnixMilli() != 1_700_000_000_123 {
				t.Errorf("report %+v", report)
			}
			if loaded.Hash() != root.Hash() || report.StateHash != root.Hash() {
				t.Error("another state hash")
			}
		})
	}
}

func TestProgressTellsObjectsAndBytes(t *testing.T) {
	data := archive(t, filled(5000, 1000).Root())
	var objects, last int64
	report, err := backup.Check(bytes.NewReader(data), func(h *backup.Header, n, size int64) {
		if n < objects || size <= last || h.Objects != 5000 {
			t.Errorf("progress %d objects, %d bytes after %d, %d", n, size, objects, last)
		}
		objects, last = n, size
	})
	if err != nil || objects != 5000 {
		t.Errorf("%d objects, %v", objects, err)
	}
	if deviation := float64(report.Bytes-report.ArchiveBytes) / float64(report.ArchiveBytes); deviation > 0.1 || deviation < -0.1 {
		t.Errorf("announced %d bytes, there were %d", report.Bytes, report.ArchiveBytes)
	}
}

// whole reports whether anybody could take the bytes for a backup.
func whole(data []byte) error {
	_, checkErr := backup.Check(bytes.NewReader(data), nil)
	_, _, loadErr := backup.Load(bytes.NewReader(data))
	if checkErr == nil || loadErr == nil {
		return fmt.Errorf("check: %v, load: %v", checkErr, loadErr)
	}
	for _, err := range []error{checkErr, loadErr} {
		if !errors.Is(err, backup.ErrDamaged) {
			return fmt.Errorf("not called damaged: %w", err)
		}
	}
	return nil
}

func TestEveryFlipIsNoticed(t *testing.T) {
	data := archive(t, filled(40, 30).Root())
	for i := range data {
		for _, bits := range []byte{1, 0x80, 0xff} {
			data[i] ^= bits
			if err := whole(data); err != nil {
				t.Fatalf("byte %d of %d: %v", i, len(data), err)
			}
			data[i] ^= bits
		}
	}
}

func TestEveryCutIsNoticed(t *testing.T) {
	data := archive(t, filled(40, 30).Root())
	for n := range data {
		if err := whole(data[:n]); err != nil {
			t.Fatalf("cut at %d of %d: %v", n, len(data), err)
		}
	}
	if err := whole(append(data, 0)); err != nil {
		t.Errorf("a byte too many: %v", err)
	}
	if err := whole(append(data[:len(data):len(data)], data...)); err != nil {
		t.Errorf("twice the same: %v", err)
	}
}

// TestTheWholeIsUnderOneChecksum: each block agrees with its own checksum, and the counts
// with the footer, but one block is not what was written.
func TestTheWholeIsUnderOneChecksum(t *testing.T) {
	const magic, blockHeader = len("setpoint backup\n"), 8
	data := archive(t, filled(40, 30).Root())
	blocks, changed := 0, 0
	for at := magic; at < len(data); blocks++ {
		payload := data[at+blockHeader:][:binary.LittleEndian.Uint32(data[at:])]
		if payload[0] == 2 { // a piece of the snapshot
			payload[len(payload)-1] ^= 1
			binary.LittleEndian.PutUint32(data[at+4:], wire.Checksum(data[at:at+4], payload))
			changed++
		}
		at += blockHeader + len(payload)
	}
	if changed == 0 {
		t.Fatalf("no piece of the snapshot in %d blocks", blocks)
	}
	if err := whole(data); err != nil {
		t.Error(err)
	}
}

func TestAFailingSourceIsNoDamage(t *testing.T) {
	broken := errors.New("network is gone")
	data := archive(t, filled(40, 30).Root())
	_, err := backup.Check(io.MultiReader(bytes.NewReader(data[:len(data)/2]), iotest.ErrReader(broken)), nil)
	if !errors.Is(err, broken) || errors.Is(err, backup.ErrDamaged) {
		t.Errorf("got %v", err)
	}
}

func TestAFullDestinationIsAnError(t *testing.T) {
	root := filled(9, 1<<20).Root()
	for _, limit := range []int64{0, 20, 1 << 20, 5 << 20} {
		if _, err := backup.Write(&limited{left: limit}, root, backup.Header{}); !errors.Is(err, errFull) {
			t.Errorf("after %d bytes: %v", limit, err)
		}
	}
}

var errFull = errors.New("full")

type limited struct{ left int64 }

func (l *limited) Write(p []byte) (int, error) {
	if l.left -= int64(len(p)); l.left < 0 {
		return 0, errFull
	}
	return len(p), nil
}
