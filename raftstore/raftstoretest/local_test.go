package raftstoretest_test

import (
	"context"
	"errors"
	"testing"

	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/raftstoretest"
	"github.com/setpoint-io/setpoint/raftstore/state"
)

func put(key string) command.Command {
	return command.Command{Ops: []command.Op{{Kind: command.Put, Key: key, Value: []byte{command.EncodingJSON}}}}
}

func TestLocalAnswersAfterApplying(t *testing.T) {
	l := raftstoretest.NewLocal(state.Options{})
	w, err := l.Watch("pods/", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	result, err := l.Propose(t.Context(), put("pods/a"))
	if err != nil || result.Code != command.OK || result.Revision != 1 {
		t.Fatalf("%+v, %v", result, err)
	}
	for name, read := range map[string]func() (*state.Root, error){
		"Root":         func() (*state.Root, error) { return l.Root(), nil },
		"ReadIndex":    func() (*state.Root, error) { return l.ReadIndex(t.Context()) },
		"WaitRevision": func() (*state.Root, error) { return l.WaitRevision(t.Context(), 1) },
		"RootAt":       func() (*state.Root, error) { return l.RootAt(1) },
	} {
		root, err := read()
		if err != nil || root.Revision != 1 || root.Len() != 1 {
			t.Errorf("%s: %+v, %v", name, root, err)
		}
	}
	events, err := w.Next(t.Context())
	if err != nil || len(events) != 1 || events[0].Key != "pods/a" {
		t.Errorf("events %+v, %v", events, err)
	}
}

func TestLocalFence(t *testing.T) {
	l := raftstoretest.NewLocal(state.Options{})
	fenced := put("pods/a")
	fenced.Fence = l.NextTerm()
	if r, err := l.Propose(t.Context(), fenced); err != nil || r.Code != command.OK {
		t.Errorf("own term: %+v, %v", r, err)
	}
	l.NextTerm()
	if r, err := l.Propose(t.Context(), fenced); err != nil || r.Code != command.FenceStale {
		t.Errorf("next term: %+v, %v", r, err)
	}
}

func TestLocalRefusesBeforeTheLog(t *testing.T) {
	l := raftstoretest.NewLocal(state.Options{})
	if _, err := l.Propose(t.Context(), command.Command{}); !errors.Is(err, command.ErrInvalid) {
		t.Errorf("invalid command: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Propose(ctx, put("a")); !errors.Is(err, context.Canceled) {
		t.Errorf("ended context: %v", err)
	}
	if l.Root().Index != 0 {
		t.Error("a refused command reached the log")
	}
}
