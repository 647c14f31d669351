package access

import (
	"context"
	"log/slog"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/apiserver/resource"
	"github.com/setpoint-io/setpoint/apiserver/storage"
	"github.com/setpoint-io/setpoint/internal/revocation"
)

// revocations keep a judge up to date with the list in the store.
type revocations struct {
	judge  *revocation.Judge
	lists  *storage.Follower
	logger *slog.Logger
}

// followRevocations begins with the list that this replica has.
func followRevocations(ctx context.Context, store *storage.Store, judge *revocation.Judge, logger *slog.Logger) *revocations {
	r := &revocations{judge: judge, logger: logger}
	table := store.Table(corev1.SchemeGroupVersion.WithResource("configmaps"))
	r.lists = table.Follow(r.changed, logger)
	if found, err := table.Get(ctx, metav1.NamespaceSystem, revocation.ConfigMapName, "0"); err == nil {
		r.use(found.Object().(*corev1.ConfigMap).Data)
	}
	return r
}

func (r *revocations) changed(was, is resource.Object) {
	for _, object := range []resource.Object{is, was} {
		if object == nil {
			continue
		}
		if object.GetName() != revocation.ConfigMapName || object.GetNamespace() != metav1.NamespaceSystem {
			return
		}
		break
	}
	var data map[string]string
	if list, ok := is.(*corev1.ConfigMap); ok && list != nil {
		data = list.Data
	}
	r.use(data)
}

// use takes a list. What cannot be read of it was written by another version; the rest counts.
func (r *revocations) use(data map[string]string) {
	entries, err := revocation.Read(data)
	if err != nil {
		r.logger.Error("the list of what is revoked cannot be read as a whole", "err", err)
	}
	r.judge.Use(revocation.NewList(entries))
	r.logger.Info("the list of what is revoked", "entries", len(entries))
}
