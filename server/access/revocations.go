package access

import (
	"context"
	"log/slog"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/setpoint-io/setpoint/apiserver/resource"
	"github.com/setpoint-io/setpoint/apiserver/storage"
	"github.com/setpoint-io/setpoint/internal/revocation"
)

// revocations keep a judge up to date with the list in the store.
type revocations struct {
	judge  *revocation.Judge
	table  *storage.Table
	lists  *storage.Follower
	logger *slog.Logger

	mu sync.Mutex
	// begun is the revision of the list that counts and that the follower has not told of, and would not if it is gone meanwhile; 0 if
	// there is none.
	begun uint64
}

// followRevocations begins with the list that this replica has, however old: nothing is waited for, since a server that does not
// listen yet has no leader.
func followRevocations(store *storage.Store, judge *revocation.Judge, logger *slog.Logger) *revocations {
	r := &revocations{judge: judge, logger: logger, table: store.Table(corev1.SchemeGroupVersion.WithResource("configmaps"))}
	r.lists = r.table.FollowSome(storage.Selection{
		Namespace: metav1.NamespaceSystem, Fields: fields.OneTermEqualSelector(metav1.ObjectNameField, revocation.ConfigMapName),
	}, r.changed, logger)
	if list, ok := r.here().(*corev1.ConfigMap); ok {
		r.use(list.Data)
		r.begun, _ = storage.ParseResourceVersion(list.ResourceVersion) // of our own making
	}
	return r
}

// here is the list that this replica has, nil if it has none that can be read.
func (r *revocations) here() resource.Object {
	list, err := r.table.Here().Get(metav1.NamespaceSystem, revocation.ConfigMapName)
	if err != nil {
		r.logger.Error("the list of what is revoked cannot be read", "err", err)
	}
	return list
}

// run follows the list until ctx ends. One that was deleted before the follower began is told of by nobody.
func (r *revocations) run(ctx context.Context) {
	begun := r.begun
	var following sync.WaitGroup
	following.Go(func() { r.lists.Run(ctx) })
	if begun != 0 && r.lists.Reach(ctx, begun) == nil {
		r.endBegun()
	}
	following.Wait()
}

// RevocationsAt waits until whoever was revoked up to a revision is shut out here, or ctx ends.
func (a *Access) RevocationsAt(ctx context.Context, revision uint64) error {
	return a.revoked.lists.Reach(ctx, revision)
}

// endBegun drops the list of the beginning if the follower has told of none.
func (r *revocations) endBegun() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.begun != 0 {
		r.begun = 0
		r.use(nil)
	}
}

func (r *revocations) changed(_, is resource.Object) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.begun = 0
	var data map[string]string
	if list, ok := is.(*corev1.ConfigMap); ok { // it is nil if the list was deleted
		data = list.Data
	}
	r.use(data)
}

// use takes the data of a list.
func (r *revocations) use(data map[string]string) {
	entries := r.judge.UseData(data, r.logger)
	r.logger.Info("the list of what is revoked", "entries", entries)
}
