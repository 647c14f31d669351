package rest

import (
	"context"

	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/setpoint-io/setpoint/apiserver/storage"
	"github.com/setpoint-io/setpoint/internal/clip"
)

// actorBytesMax is how much of a user's name each write carries in the log: whoever may impersonate chooses it.
const actorBytesMax = 256

// withActor adds the authenticated user and the audit id to the origin that the
// write will carry in the log.
func withActor(ctx context.Context) context.Context {
	o := storage.OriginFrom(ctx)
	if user, ok := request.UserFrom(ctx); ok {
		o.User = clip.Text(user.GetName(), actorBytesMax)
	}
	o.RequestID = string(audit.GetAuditIDTruncated(ctx))
	return storage.WithOrigin(ctx, o)
}

func withFieldManager(ctx context.Context, manager string) context.Context {
	o := storage.OriginFrom(ctx)
	o.FieldManager = manager
	return storage.WithOrigin(ctx, o)
}
