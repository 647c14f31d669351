package node

import (
	"context"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/setpoint-io/setpoint/agent/base/wait"
)

const (
	// leaseSlack is how much longer than the interval a Lease promises to last:
	// the time for renewals that fail while the cluster elects a leader.
	leaseSlack = 30 * time.Second
	// leaseRetry is the pause after a refused renewal.
	leaseRetry = time.Second
)

// Lease renews one node's Lease. The zero value with all exported fields set
// is ready; it is not safe for concurrent use.
type Lease struct {
	Client kubernetes.Interface
	Name   string
	// Owner is the uid of the Node right now. It may change: a Node deleted by
	// hand comes back under a new one, and the collector would take a Lease
	// that names the old.
	Owner    func() types.UID
	Interval time.Duration

	last *coordinationv1.Lease
}

// Renew writes the Lease with the given time, creating it when it is missing.
func (l *Lease) Renew(ctx context.Context, now time.Time) error {
	leases := l.Client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	if l.last == nil {
		got, err := leases.Get(ctx, l.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			l.last, err = leases.Create(ctx, l.renewed(&coordinationv1.Lease{}, now), metav1.CreateOptions{})
			return l.keep(err)
		}
		if err != nil {
			return err
		}
		l.last = got
	}
	got, err := leases.Update(ctx, l.renewed(l.last, now), metav1.UpdateOptions{})
	l.last = got
	return l.keep(err)
}

// keep forgets the cached Lease after an error, so that the next try reads it.
func (l *Lease) keep(err error) error {
	if err != nil {
		l.last = nil
	}
	return err
}

func (l *Lease) renewed(from *coordinationv1.Lease, now time.Time) *coordinationv1.Lease {
	next := from.DeepCopy()
	seconds := int32((l.Interval + leaseSlack) / time.Second)
	renew := metav1.NewMicroTime(now)
	next.Name, next.Namespace = l.Name, corev1.NamespaceNodeLease
	next.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: l.Name, UID: l.Owner()}}
	next.Spec.HolderIdentity = &next.Name
	next.Spec.LeaseDurationSeconds = &seconds
	next.Spec.RenewTime = &renew
	return next
}

func (k *keeper) keepLease(ctx context.Context) {
	lease := &Lease{Client: k.Client, Name: k.Name, Owner: k.uid, Interval: k.LeaseInterval}
	for {
		delay := k.LeaseInterval
		if err := lease.Renew(ctx, time.Now()); err != nil && ctx.Err() == nil {
			k.Logger.Warn("cannot renew the node lease", "node", k.Name, "err", err)
			delay = leaseRetry
		}
		if !wait.For(ctx, delay) {
			return
		}
	}
}

func (k *keeper) uid() types.UID { return k.owner.Load().(types.UID) }
