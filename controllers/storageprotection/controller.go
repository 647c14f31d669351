package storageprotection

import (
	"context"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
)

// Upstream's finalizers.
const (
	claimFinalizer  = "kubernetes.io/pvc-protection"
	volumeFinalizer = "kubernetes.io/pv-protection"
	classFinalizer  = "kubernetes.io/vac-protection"
)

var (
	classes = reconcile.KindOf[*storagev1.VolumeAttributesClass](storagev1.SchemeGroupVersion.WithResource("volumeattributesclasses"))
	// byClaim files pods under the claims that they use.
	byClaim = reconcile.Index{Name: "setpoint/claim", Keys: claimKeysOf}
)

// New protects storage.
func New() reconcile.Controller {
	return reconcile.Controller{
		Name:    "storage-protection-controller",
		Account: "pvc-protection-controller",
		Reads:   []reconcile.Read{reconcile.PersistentVolumes, reconcile.PersistentVolumeClaims, classes, reconcile.Pods.By(byClaim)},
		Run:     run,
	}
}

type controller struct {
	env     *reconcile.Env
	volumes reconcile.Cache[*corev1.PersistentVolume]
	claims  reconcile.Cache[*corev1.PersistentVolumeClaim]
	classes reconcile.Cache[*storagev1.VolumeAttributesClass]
	pods    reconcile.Cache[*corev1.Pod]
}

func run(ctx context.Context, env *reconcile.Env) error {
	c := &controller{
		env: env, volumes: reconcile.PersistentVolumes.From(env), claims: reconcile.PersistentVolumeClaims.From(env),
		classes: classes.From(env), pods: reconcile.Pods.From(env),
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, loop := range []reconcile.Config{
		{Name: "pvcprotection", Reconcile: c.reconcileClaim, Sources: c.claimSources()},
		{Name: "pvprotection", Reconcile: c.reconcileVolume, Sources: []reconcile.Source{reconcile.Self(c.volumes)}},
		{Name: "vacprotection", Reconcile: c.reconcileClass, Sources: c.classSources()},
	} {
		loop.Env = env
		group.Go(func() error { return reconcile.Run(ctx, loop) })
	}
	return group.Wait()
}

// claimKeysOf are the claims that a pod uses.
func claimKeysOf(o metav1.Object) []string {
	pod, ok := o.(*corev1.Pod)
	if !ok {
		return nil
	}
	var keys []string
	for _, name := range claimsOf(pod) {
		keys = append(keys, pod.Namespace+"/"+name)
	}
	return keys
}

// object is what is protected.
type object[T any] interface {
	metav1.Object
	DeepCopy() T
}

// updater is the part of a typed client that is needed.
type updater[T any] interface {
	Update(ctx context.Context, obj T, options metav1.UpdateOptions) (T, error)
}

// protect puts a finalizer on what lives and takes it off what is to go and is not used.
func protect[T object[T]](
	ctx context.Context,
	o T,
	finalizer string,
	used func(context.Context, T) (bool, error),
	client updater[T],
) error {
	held, going := slices.Contains(o.GetFinalizers(), finalizer), o.GetDeletionTimestamp() != nil
	if held != going {
		return nil
	}
	next := o.DeepCopy()
	if !going {
		next.SetFinalizers(append(next.GetFinalizers(), finalizer))
	} else {
		if in, err := used(ctx, o); in || err != nil {
			return err
		}
		next.SetFinalizers(slices.DeleteFunc(next.GetFinalizers(), func(f string) bool { return f == finalizer }))
	}
	_, err := client.Update(reconcile.WithCause(ctx, o), next, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func (c *controller) reconcileClaim(ctx context.Context, key reconcile.Key) (time.Duration, error) {
	claim, err := c.claims.Get(key)
	if err != nil {
		return 0, reconcile.IgnoreNotFound(err)
	}
	if written, err := c.noteUse(ctx, claim); written || err != nil {
		return 0, err // the claim as it was written comes back
	}
	used := func(ctx context.Context, claim *corev1.PersistentVolumeClaim) (bool, error) {
		return c.claimUsed(ctx, claim, uses)
	}
	return 0, protect(ctx, claim, claimFinalizer, used, c.env.Client.CoreV1().PersistentVolumeClaims(key.Namespace))
}

func (c *controller) reconcileVolume(ctx context.Context, key reconcile.Key) (time.Duration, error) {
	volume, err := c.volumes.Get(key)
	if err != nil {
		return 0, reconcile.IgnoreNotFound(err)
	}
	bound := func(_ context.Context, v *corev1.PersistentVolume) (bool, error) {
		return v.Status.Phase == corev1.VolumeBound, nil
	}
	return 0, protect(ctx, volume, volumeFinalizer, bound, c.env.Client.CoreV1().PersistentVolumes())
}

func (c *controller) reconcileClass(ctx context.Context, key reconcile.Key) (time.Duration, error) {
	class, err := c.classes.Get(key)
	if err != nil {
		return 0, reconcile.IgnoreNotFound(err)
	}
	used := func(_ context.Context, v *storagev1.VolumeAttributesClass) (bool, error) { return c.classUsed(v.Name) }
	return 0, protect(ctx, class, classFinalizer, used, c.env.Client.StorageV1().VolumeAttributesClasses())
}
