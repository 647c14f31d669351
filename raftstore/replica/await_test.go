package replica

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/hashicorp/raft"
)

// TestNobodyWaitsForever: raft keeps calls in a buffer that it leaves unread when it shuts down.
func TestNobodyWaitsForever(t *testing.T) {
	r, err := openLone(t, t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	waitLeader(t, r)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	for range 64 { // each goes into the buffer or is refused, by chance
		if r.answer(r.raft.VerifyLeader()) == nil {
			t.Fatal("it leads though it has shut down")
		}
	}
}

// TestTurned: the main loop of a replica that leads turns, and who gives it no time learns nothing of it.
func TestTurned(t *testing.T) {
	r, err := openLone(t, t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	waitLeader(t, r)
	if err := r.Turned(t.Context()); err != nil {
		t.Error(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Turned(ended); err == nil {
		t.Error("it has turned though nobody waited")
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
}

// stuck is a future that raft's main loop does not come to, until it ends.
type stuck struct{ ended chan struct{} }

func (s stuck) Error() error { <-s.ended; return raft.ErrRaftShutdown }

// TestALoopThatWaitsForASnapshot goes on while bytes of it move, and is stuck when they do not.
func TestALoopThatWaitsForASnapshot(t *testing.T) {
	for name, c := range map[string]struct {
		move func(r *Replica) error
		want error
	}{
		"nothing moves": {func(*Replica) error { return nil }, context.Canceled},
		"it arrives": {func(r *Replica) error {
			sink, err := countedSnapshots{NewMemory().Open().snapshots, &r.snapshotBytes}.Create(1, 1, 1, raft.Configuration{}, 1, nil)
			if err != nil {
				return err
			}
			_, err = io.WriteString(sink, "bytes")
			return errors.Join(err, sink.Cancel())
		}, nil},
		"it is restored": {func(r *Replica) error {
			_, err := io.Copy(io.Discard, countedReader{strings.NewReader("bytes"), &r.snapshotBytes})
			return err
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Replica{failing: make(chan struct{}), ended: make(chan struct{})}
			ctx, cancel := context.WithCancel(t.Context())
			future := stuck{make(chan struct{})}
			defer close(future.ended)
			err := r.turned(ctx, func() raft.Future {
				defer cancel()
				if err := c.move(r); err != nil {
					t.Error(err)
				}
				return future
			})
			if !errors.Is(err, c.want) {
				t.Errorf("%v, want %v", err, c.want)
			}
		})
	}
}
