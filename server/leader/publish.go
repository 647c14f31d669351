package leader

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/setpoint-io/setpoint/internal/clusterclock"
)

const (
	// Namespace holds the Leases.
	Namespace = metav1.NamespaceSystem
	// RenewInterval is the time between two writes of each Lease.
	RenewInterval = 10 * time.Second
	// leaseDuration is what the Leases announce: one and a half renewals, as
	// readers of upstream's Leases expect.
	leaseDuration = 15 * time.Second
	// publishRetryDelay is the pause after a failed write.
	publishRetryDelay = time.Second
	// namespaceDelay is the pause while a new cluster does not have the
	// namespace yet.
	namespaceDelay = 50 * time.Millisecond
)

// PublishConfig says who acts.
type PublishConfig struct {
	// Client writes the Leases; it should carry the term's fence.
	Client kubernetes.Interface
	// Server is the acting server's name.
	Server string
	// Term is the Raft term in which it acts.
	Term uint64
	// Clock is what the Leases go by; nil is the real one.
	Clock clock.WithTicker
	// Logger receives failed writes; nil means silence.
	Logger *slog.Logger
}

// LeaseNames are the Leases that Publish writes: those that upstream's
// controller manager and scheduler would hold.
func LeaseNames() []string { return []string{"kube-controller-manager", "kube-scheduler"} }

// Publish overwrites both Leases at once and renews them until ctx ends; it
// returns nil then.
func Publish(ctx context.Context, cfg PublishConfig) error {
	if cfg.Clock == nil {
		cfg.Clock = clock.RealClock{}
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	var wg sync.WaitGroup
	for _, name := range LeaseNames() {
		wg.Go(func() { publish(ctx, cfg, name) })
	}
	wg.Wait()
	return nil
}

func publish(ctx context.Context, cfg PublishConfig, name string) {
	for lease := (&lease{cfg: cfg, name: name}); ; {
		wait := RenewInterval
		switch err := lease.write(ctx, cfg.Clock.Now()); {
		case err == nil || ctx.Err() != nil:
		case apierrors.IsNotFound(err):
			wait = namespaceDelay
		default:
			cfg.Logger.Warn("lease not renewed", "lease", name, "err", err)
			wait = publishRetryDelay
		}
		if !clusterclock.Wait(ctx, cfg.Clock, wait) {
			return
		}
	}
}

// lease is one Lease, with what was last written of it: a renewal reads only if somebody else wrote in between.
type lease struct {
	cfg  PublishConfig
	name string
	last *coordinationv1.Lease
}

func (l *lease) write(ctx context.Context, now time.Time) (err error) {
	leases := l.cfg.Client.CoordinationV1().Leases(Namespace)
	if l.last != nil {
		l.last, err = leases.Update(ctx, held(l.last.DeepCopy(), l.cfg, now), metav1.UpdateOptions{})
		if err == nil {
			return nil
		}
	}
	l.last = nil
	found, err := leases.Get(ctx, l.name, metav1.GetOptions{})
	var written *coordinationv1.Lease
	switch {
	case apierrors.IsNotFound(err):
		fresh := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: l.name, Namespace: Namespace}}
		written, err = leases.Create(ctx, held(fresh, l.cfg, now), metav1.CreateOptions{})
	case err == nil:
		written, err = leases.Update(ctx, held(found.DeepCopy(), l.cfg, now), metav1.UpdateOptions{})
	}
	if err == nil {
		l.last = written
	}
	return err
}

// held marks the lease as held by cfg's server: taken over when it was held by
// another term, else renewed.
func held(lease *coordinationv1.Lease, cfg PublishConfig, now time.Time) *coordinationv1.Lease {
	holder := fmt.Sprintf("%s_%d", cfg.Server, cfg.Term)
	stamp := metav1.NewMicroTime(now)
	seconds := int32(leaseDuration / time.Second)
	spec := &lease.Spec
	if spec.HolderIdentity == nil || *spec.HolderIdentity != holder {
		transitions := int32(0)
		if spec.LeaseTransitions != nil {
			transitions = *spec.LeaseTransitions
		}
		if spec.HolderIdentity != nil {
			transitions++
		}
		spec.HolderIdentity, spec.LeaseTransitions, spec.AcquireTime = &holder, &transitions, &stamp
	}
	spec.RenewTime, spec.LeaseDurationSeconds = &stamp, &seconds
	return lease
}
