package heldstate

import (
	"io"
	"strings"
	"testing"

	"github.com/setpoint-io/setpoint/raftstore/state"
)

// counted wraps a source as raft does.
type counted struct{ io.ReadCloser }

func (c counted) WrappedReadCloser() io.ReadCloser { return c.ReadCloser }

func TestAStateIsFoundBehindItsSource(t *testing.T) {
	held := &state.Snapshot{}
	if got := Of(counted{counted{Source(held)}}); got != held {
		t.Errorf("found %v", got)
	}
	if got := Of(counted{io.NopCloser(strings.NewReader("bytes"))}); got != nil {
		t.Errorf("bytes are the state %v", got)
	}
	if _, err := io.ReadAll(Source(held)); err == nil {
		t.Error("it has bytes")
	}
}
