package volumebinder

import (
	"context"
	"sync"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
	"github.com/setpoint-io/setpoint/controllers/reconcile/newest"
)

// New binds claims and volumes.
func New() reconcile.Controller {
	return reconcile.Controller{
		Name:    "persistentvolume-controller",
		Account: "persistent-volume-binder",
		Reads: []reconcile.Read{
			reconcile.PersistentVolumes.By(freeByClass, byReference), reconcile.PersistentVolumeClaims.By(unboundByClass, byVolume),
			reconcile.StorageClasses, reconcile.Pods.By(byClaim),
		},
		Run: run,
	}
}

// controller is one term. Its two loops share what was written.
type controller struct {
	env     *reconcile.Env
	claims  reconcile.Cache[*corev1.PersistentVolumeClaim]
	volumes reconcile.Cache[*corev1.PersistentVolume]
	classes reconcile.Cache[*storagev1.StorageClass]
	pods    reconcile.Cache[*corev1.Pod]

	writtenClaims  newest.Versions[*corev1.PersistentVolumeClaim]
	writtenVolumes newest.Versions[*corev1.PersistentVolume]
	voice          voice

	// choosing is held while a claim chooses its volume; it guards chosen, the volumes that are being bound.
	choosing sync.Mutex
	chosen   map[string]types.UID
}

func run(ctx context.Context, env *reconcile.Env) error {
	c := &controller{
		env: env, claims: reconcile.PersistentVolumeClaims.From(env), volumes: reconcile.PersistentVolumes.From(env),
		classes: reconcile.StorageClasses.From(env), pods: reconcile.Pods.From(env),
		chosen: map[string]types.UID{}, voice: voice{events: env.Events, said: map[reconcile.Key]utterance{}},
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, loop := range []reconcile.Config{
		{Name: "claims", Reconcile: c.reconcileClaim, Sources: c.claimSources()},
		{Name: "volumes", Reconcile: c.reconcileVolume, Sources: c.volumeSources()},
	} {
		loop.Env = env
		group.Go(func() error { return reconcile.Run(ctx, loop) })
	}
	return group.Wait()
}
