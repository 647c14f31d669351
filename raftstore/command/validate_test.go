package command_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/setpoint-io/setpoint/raftstore/command"
)

func TestValidate(t *testing.T) {
	put := command.Op{Kind: command.Put, Key: "a"}
	withOp := func(change func(*command.Op)) command.Command {
		op := put
		change(&op)
		return command.Command{Ops: []command.Op{op}}
	}
	cases := []struct {
		name string
		c    command.Command
		ok   bool
	}{
		{"plain put", command.Command{Ops: []command.Op{put}}, true},
		{"transaction", command.Command{Ops: []command.Op{put, {Kind: command.Check, Key: "b"}}}, true},
		{"lone system op", command.Command{Ops: []command.Op{{Kind: command.OpenSession}}}, true},
		{"largest value", withOp(func(o *command.Op) { o.Value = make([]byte, command.MaxValueBytes) }), true},
		{"present", withOp(func(o *command.Op) { o.Precondition = command.Present }), true},
		{"at a revision", withOp(func(o *command.Op) { o.Precondition, o.Revision = command.AtRevision, 1 }), true},
		{"longest key", withOp(func(o *command.Op) { o.Key = strings.Repeat("k", command.MaxKeyBytes) }), true},
		{"longest uid", withOp(func(o *command.Op) { o.UID = strings.Repeat("u", command.MaxUIDBytes) }), true},
		{"longest names", command.Command{
			Actor:     command.Actor{User: strings.Repeat("u", command.MaxNameBytes), FieldManager: strings.Repeat("m", command.MaxNameBytes)},
			RequestID: strings.Repeat("r", command.MaxNameBytes), Cause: command.Cause{UID: strings.Repeat("u", command.MaxUIDBytes)},
			Ops: []command.Op{put},
		}, true},
		{"most ops", command.Command{Ops: slices.Repeat([]command.Op{put}, command.MaxOps)}, true},
		{"longest life", command.Command{Ops: []command.Op{
			{Kind: command.SetFeatureLevel, Revision: 2, Value: make([]byte, command.MaxLifeBytes)},
		}}, true},
		{"longest cluster id", command.Command{Ops: []command.Op{
			{Kind: command.SetClusterID, Value: make([]byte, command.MaxClusterIDBytes)},
		}}, true},
		{"shortest cluster id", command.Command{Ops: []command.Op{{Kind: command.SetClusterID, Value: []byte("c")}}}, true},
		{"long cluster id", command.Command{Ops: []command.Op{
			{Kind: command.SetClusterID, Value: make([]byte, command.MaxClusterIDBytes+1)},
		}}, false},
		{"one op too many", command.Command{Ops: slices.Repeat([]command.Op{put}, command.MaxOps+1)}, false},
		{"long field manager", command.Command{
			Actor: command.Actor{FieldManager: strings.Repeat("m", command.MaxNameBytes+1)}, Ops: []command.Op{put},
		}, false},
		{"long request id", command.Command{RequestID: strings.Repeat("r", command.MaxNameBytes+1), Ops: []command.Op{put}}, false},
		{"hash", command.Command{Ops: []command.Op{{Kind: command.StateHash, Value: make([]byte, command.HashBytes)}}}, true},
		{"no ops", command.Command{}, false},
		{"too many ops", command.Command{Ops: make([]command.Op, command.MaxOps+1)}, false},
		{"system op in company", command.Command{Ops: []command.Op{put, {Kind: command.OpenSession}}}, false},
		{"unknown kind", withOp(func(o *command.Op) { o.Kind = 99 }), false},
		{"unknown precondition", withOp(func(o *command.Op) { o.Precondition = 9 }), false},
		{"empty key", withOp(func(o *command.Op) { o.Key = "" }), false},
		{"long key", withOp(func(o *command.Op) { o.Key = strings.Repeat("k", command.MaxKeyBytes+1) }), false},
		{"long uid", withOp(func(o *command.Op) { o.UID = strings.Repeat("u", command.MaxUIDBytes+1) }), false},
		{"large value", withOp(func(o *command.Op) { o.Value = make([]byte, command.MaxValueBytes+1) }), false},
		{"at revision zero", withOp(func(o *command.Op) { o.Precondition = command.AtRevision }), false},
		{"long user", command.Command{Actor: command.Actor{User: strings.Repeat("u", command.MaxNameBytes+1)}, Ops: []command.Op{put}}, false},
		{"long cause", command.Command{Cause: command.Cause{UID: strings.Repeat("u", command.MaxUIDBytes+1)}, Ops: []command.Op{put}}, false},
		{"short hash", command.Command{Ops: []command.Op{{Kind: command.StateHash, Value: []byte("short")}}}, false},
		{"long life", command.Command{Ops: []command.Op{{Kind: command.SetFeatureLevel, Revision: 2, Value: make([]byte, command.MaxLifeBytes+1)}}}, false},
		{"empty cluster id", command.Command{Ops: []command.Op{{Kind: command.SetClusterID}}}, false},
		{"too large together", command.Command{Ops: []command.Op{
			{Kind: command.Put, Key: "a", Value: make([]byte, command.MaxValueBytes)},
			{Kind: command.Put, Key: "b", Value: make([]byte, command.MaxValueBytes)},
		}}, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			err := c.c.Validate()
			if c.ok && err != nil || !c.ok && !errors.Is(err, command.ErrInvalid) {
				t.Errorf("got %v, want valid: %v", err, c.ok)
			}
		})
	}
}
