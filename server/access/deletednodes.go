package access

import (
	"log/slog"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/apiserver/resource"
	"github.com/setpoint-io/setpoint/apiserver/storage"
	"github.com/setpoint-io/setpoint/internal/revocation"
	"github.com/setpoint-io/setpoint/internal/trust"
)

// followDeletedNodes ends what nodes have open by a certificate when their Node is deleted, or belongs to another key: their next request
// is judged (auth.NodeKeys).
func followDeletedNodes(store *storage.Store, judge *revocation.Judge, logger *slog.Logger) *storage.Follower {
	return store.Table(corev1.SchemeGroupVersion.WithResource("nodes")).Follow(func(was, is resource.Object) {
		key := ""
		if is != nil {
			key = is.GetAnnotations()[trust.NodeKeyAnnotation]
		}
		if was == nil || is != nil && (key == "" || key == was.GetAnnotations()[trust.NodeKeyAnnotation]) {
			return
		}
		user := trust.NodeUser(was.GetName())
		judge.End(func(who revocation.Identity) bool { return who.User == user && who.Key != "" && who.Key != key })
	}, logger)
}
