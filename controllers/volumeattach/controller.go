package volumeattach

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
	"github.com/setpoint-io/setpoint/controllers/reconcile/newest"
)

var (
	drivers     = reconcile.KindOf[*storagev1.CSIDriver](storagev1.SchemeGroupVersion.WithResource("csidrivers"))
	attachments = reconcile.KindOf[*storagev1.VolumeAttachment](storagev1.SchemeGroupVersion.WithResource("volumeattachments"))
)

// New attaches and detaches volumes.
func New() reconcile.Controller {
	return reconcile.Controller{
		Name: "attachdetach-controller",
		Reads: []reconcile.Read{
			reconcile.Pods.By(byNode, byClaim), reconcile.Nodes, reconcile.PersistentVolumes, reconcile.PersistentVolumeClaims,
			drivers, attachments.By(byAttachedNode, byDriver),
		},
		Run: run,
	}
}

// controller is one term.
type controller struct {
	env         *reconcile.Env
	pods        reconcile.Cache[*corev1.Pod]
	nodes       reconcile.Cache[*corev1.Node]
	volumes     reconcile.Cache[*corev1.PersistentVolume]
	claims      reconcile.Cache[*corev1.PersistentVolumeClaim]
	drivers     reconcile.Cache[*storagev1.CSIDriver]
	attachments reconcile.Cache[*storagev1.VolumeAttachment]

	writtenNodes newest.Versions[*corev1.Node]
	reserved     reservations
	memory       memory
}

func run(ctx context.Context, env *reconcile.Env) error {
	c := &controller{
		env: env, pods: reconcile.Pods.From(env), nodes: reconcile.Nodes.From(env), volumes: reconcile.PersistentVolumes.From(env),
		claims: reconcile.PersistentVolumeClaims.From(env), drivers: drivers.From(env), attachments: attachments.From(env),
	}
	c.reserved = reservations{get: c.attachmentOf, holders: c.holders}
	if err := c.takeOver(ctx); err != nil {
		return err
	}
	return reconcile.Run(ctx, reconcile.Config{
		Name: "volumeattach", Queue: "attachdetach", Reconcile: c.reconcile, Sources: c.sources(), Env: env,
	})
}

// takeOver learns what a former leader made and deleted and the caches may not show yet.
func (c *controller) takeOver(ctx context.Context) error {
	list, err := c.env.Client.StorageV1().VolumeAttachments().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	there := map[types.UID]bool{}
	for i := range list.Items {
		a := &list.Items[i]
		c.reserved.found(a)
		there[a.UID] = a.DeletionTimestamp == nil
	}
	cached, err := c.attachments.List("", nil)
	for _, a := range cached {
		if !there[a.UID] {
			c.memory.deletes(a.UID)
		}
	}
	return err
}

func (c *controller) reconcile(ctx context.Context, key reconcile.Key) (time.Duration, error) {
	view, err := c.look(ctx, key.Name)
	if err != nil {
		return 0, err
	}
	if view.node != nil {
		ctx = reconcile.WithCause(ctx, view.node)
	}
	plan := planNode(view)
	c.memory.keep(key.Name, view, plan)
	return c.act(ctx, view, plan)
}

// attachmentOf asks the API; nil if there is none.
func (c *controller) attachmentOf(ctx context.Context, name string) (*storagev1.VolumeAttachment, error) {
	found, err := c.env.Client.StorageV1().VolumeAttachments().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return found, err
}

// newest is the cached version of an attachment, or that of the API if it may have been deleted and the cache does not show it.
func (c *controller) newest(ctx context.Context, cached *storagev1.VolumeAttachment, deleted bool) (*storagev1.VolumeAttachment, error) {
	if cached.DeletionTimestamp != nil || !deleted {
		return cached, nil
	}
	found, err := c.attachmentOf(ctx, cached.Name)
	if err != nil {
		return nil, err
	}
	if found == nil || found.UID != cached.UID {
		found = cached.DeepCopy()
		found.DeletionTimestamp = &metav1.Time{Time: c.env.Now()}
	}
	return found, nil
}
