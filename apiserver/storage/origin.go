package storage

import (
	"context"

	"github.com/setpoint-io/setpoint/raftstore/command"
)

// Origin says who makes a change and why. It travels in the context from the
// edge of the API server and is kept in the log beside the change.
type Origin struct {
	// User and FieldManager are the actor.
	User, FieldManager string
	// RequestID is the audit id of the request.
	RequestID string
	// CauseUID and CauseRevision name the object whose change a controller reacts to.
	CauseUID      string
	CauseRevision uint64
	// Fence is the leadership term of the acting controllers, 0 for everybody else.
	// A change under another term is refused.
	Fence uint64
}

type originKey struct{}

// WithOrigin returns a context whose writes carry o.
func WithOrigin(ctx context.Context, o Origin) context.Context {
	return context.WithValue(ctx, originKey{}, o)
}

// OriginFrom returns the origin of ctx, or the zero value.
func OriginFrom(ctx context.Context) Origin {
	o, _ := ctx.Value(originKey{}).(Origin)
	return o
}

func (o Origin) stamp(c *command.Command) {
	c.Fence = o.Fence
	c.Actor = command.Actor{User: o.User, FieldManager: o.FieldManager}
	c.Cause = command.Cause{UID: o.CauseUID, Revision: o.CauseRevision}
	c.RequestID = o.RequestID
}
