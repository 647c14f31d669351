package localvolume

import (
	"cmp"
	"context"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
	"github.com/setpoint-io/setpoint/controllers/reconcile/newest"
	"github.com/setpoint-io/setpoint/internal/localvolume"
)

// Config of the controller.
type Config struct {
	// Class makes the class setpoint-local. Without it, volumes of other classes are provisioned all the same.
	Class bool
	// Agents make and delete the volumes; nil asks the nodes' agents through the API.
	Agents Agents
}

var (
	csiNodes   = reconcile.KindOf[*storagev1.CSINode](storagev1.SchemeGroupVersion.WithResource("csinodes"))
	capacities = reconcile.KindOf[*storagev1.CSIStorageCapacity](storagev1.SchemeGroupVersion.WithResource("csistoragecapacities"))
)

// New provisions local volumes.
func New(config Config) reconcile.Controller {
	return reconcile.Controller{
		Name: "local-volume-controller",
		Reads: []reconcile.Read{
			reconcile.PersistentVolumeClaims, reconcile.PersistentVolumes, reconcile.StorageClasses, reconcile.Nodes,
			csiNodes, capacities.By(byNode),
		},
		Run: func(ctx context.Context, env *reconcile.Env) error { return run(ctx, env, config) },
	}
}

// controller is one term.
type controller struct {
	env      *reconcile.Env
	config   Config
	agents   Agents
	claims   reconcile.Cache[*corev1.PersistentVolumeClaim]
	volumes  reconcile.Cache[*corev1.PersistentVolume]
	classes  reconcile.Cache[*storagev1.StorageClass]
	nodes    reconcile.Cache[*corev1.Node]
	csiNodes reconcile.Cache[*storagev1.CSINode]
	rooms    reconcile.Cache[*storagev1.CSIStorageCapacity]

	ledger       ledger
	writtenRooms newest.Versions[*storagev1.CSIStorageCapacity]
}

func run(ctx context.Context, env *reconcile.Env, config Config) error {
	c := &controller{
		env: env, config: config, agents: config.Agents,
		claims: reconcile.PersistentVolumeClaims.From(env), volumes: reconcile.PersistentVolumes.From(env),
		classes: reconcile.StorageClasses.From(env), nodes: reconcile.Nodes.From(env),
		csiNodes: csiNodes.From(env), rooms: capacities.By(byNode).From(env),
	}
	if c.agents == nil {
		c.agents = proxied{env.Client}
	}
	filled := []reconcile.Source{
		reconcile.Filled(c.claims), reconcile.Filled(c.volumes), reconcile.Filled(c.classes), reconcile.Filled(c.nodes),
		reconcile.Filled(c.csiNodes),
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, loop := range c.loops() {
		loop.Env, loop.Sources = env, append(loop.Sources, filled...)
		group.Go(func() error { return reconcile.Run(ctx, loop) })
	}
	return group.Wait()
}

func (c *controller) loops() []reconcile.Config {
	claims := []reconcile.Source{reconcile.Self(c.claims), reconcile.Changes(c.volumes, claimsOfVolume)}
	volumes := []reconcile.Source{reconcile.Self(c.volumes), reconcile.Changes(c.claims, c.volumesOfClaim)}
	nodes := []reconcile.Source{reconcile.Changes(c.csiNodes, whenNew)}
	classes := []reconcile.Source{reconcile.Changes(c.classes, ownClasses)}
	return []reconcile.Config{
		{Name: "localvolume claims", Queue: "local_volume_claims", Reconcile: c.reconcileClaim, Sources: claims},
		{Name: "localvolume volumes", Queue: "local_volumes", Reconcile: c.reconcileVolume, Sources: volumes},
		{Name: "localvolume rooms", Queue: "local_volume_rooms", Reconcile: c.reconcileRoom, Sources: c.roomSources()},
		{Name: "localvolume sweep", Queue: "local_volume_sweep", Reconcile: c.sweep, Sources: nodes},
		{
			Name: "localvolume objects", Queue: "local_volume_objects", Reconcile: c.ensureObjects, Workers: 1, Sources: classes,
			Feeds: []reconcile.Feed{reconcile.Once(theObjects)},
		},
	}
}

// claimsOfVolume is the claim of a volume of ours: the volume may have grown, or have appeared.
func claimsOfVolume(before, after metav1.Object) []reconcile.Key {
	v, ok := after.(*corev1.PersistentVolume)
	if !ok || before == nil || !isOurs(v) || v.Spec.ClaimRef == nil {
		return nil
	}
	return []reconcile.Key{{Namespace: v.Spec.ClaimRef.Namespace, Name: v.Spec.ClaimRef.Name}}
}

// volumesOfClaim is the volume of a claim that goes: the bound one, or the one that was provisioned and not bound yet. One that
// the cache does not show yet finds its claim gone when it appears.
func (c *controller) volumesOfClaim(before, after metav1.Object) []reconcile.Key {
	claim, ok := before.(*corev1.PersistentVolumeClaim)
	if !ok || after != nil {
		return nil
	}
	name := cmp.Or(claim.Spec.VolumeName, localvolume.Handle(claim.UID))
	if found(c.volumes, name) == nil {
		return nil
	}
	return []reconcile.Key{{Name: name}}
}

func whenNew(before, after metav1.Object) []reconcile.Key {
	if before != nil || after == nil {
		return nil
	}
	return []reconcile.Key{reconcile.KeyOf(after)}
}

// ownClasses: a class of ours needs the CSIDriver; one that was deleted is made again with the next term.
func ownClasses(_, after metav1.Object) []reconcile.Key {
	if class, ok := after.(*storagev1.StorageClass); ok && isOwnClass(class) {
		return []reconcile.Key{theObjects}
	}
	return nil
}
