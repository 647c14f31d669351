package replica

import (
	"context"
	"errors"
	"reflect"

	"github.com/hashicorp/raft"
)

// await begins a call of raft and waits for its future. Neither can be interrupted,
// and with a disk that hangs both last. The goroutine left behind ends when raft
// answers, at the latest on its shutdown.
func (r *Replica) await(ctx context.Context, begin func() raft.Future) error {
	done := make(chan error, 1)
	go func() { done <- r.answer(begin()) }()
	select {
	case err := <-done:
		return err
	case <-r.failing:
		return r.Failed()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// answer waits for raft's answer, or until it has shut down without one: what was asked
// for may have happened then, or not.
func (r *Replica) answer(future raft.Future) error {
	endWith(future, r.ended)
	err := future.Error()
	if !errors.Is(err, raft.ErrRaftShutdown) {
		return err
	}
	select {
	case <-r.ended:
		return raft.ErrLeadershipLost
	default:
		return err
	}
}

// endWith makes the future end with the channel. Raft does not answer those that wait in the buffer of a channel when
// it shuts down, and its futures have a field for such a channel, which it leaves empty there. Only Error reads it.
func endWith(future raft.Future, ended chan struct{}) {
	value := reflect.ValueOf(future)
	if value.Kind() != reflect.Pointer {
		return // an answer, not a future
	}
	if field := value.Elem().FieldByName("ShutdownCh"); field.CanSet() && field.IsNil() {
		field.Set(reflect.ValueOf(ended))
	}
}
