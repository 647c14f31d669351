package volumeattach

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// takenRetry is when a node asks again for a volume that another one has, if nothing wakes it before.
	takenRetry = time.Minute
	// inUseRetry is when a node is looked at again that uses a volume although the cache says that it does not.
	inUseRetry = time.Second
)

// Upstream's reasons.
const (
	reasonAttached = "SuccessfulAttachVolume"
	reasonFailed   = "FailedAttachVolume"
)

// act carries a plan out. Nothing is detached before the node's status has ceased to list it.
func (c *controller) act(ctx context.Context, view nodeView, plan nodePlan) (time.Duration, error) {
	if plan.rewrite {
		err := c.report(ctx, view.node, plan.report)
		if apierrors.IsNotFound(err) {
			return 0, nil // the cache will say so
		}
		if err != nil {
			return 0, fmt.Errorf("status of node %s: %w", view.name, err)
		}
	}
	for _, w := range plan.attached {
		c.tell(w, corev1.EventTypeNormal, reasonAttached, fmt.Sprintf("AttachVolume.Attach succeeded for volume %q ", w.volume.Name))
	}
	for _, f := range plan.failed {
		text := fmt.Sprintf("AttachVolume.Attach failed for volume %q : %s", f.want.volume.Name, f.message)
		if c.memory.news(view.name, f.want.name, text) {
			c.tell(f.want, corev1.EventTypeWarning, reasonFailed, text)
		}
	}
	errs := []error{c.detachAll(ctx, view, &plan)}
	for _, w := range plan.attach {
		taken, err := c.attach(ctx, view.name, w)
		if errs = append(errs, err); taken {
			plan.callAgain(takenRetry)
		}
	}
	return plan.again, errors.Join(errs...)
}

// report writes which volumes are attached to a node.
func (c *controller) report(ctx context.Context, node *corev1.Node, attached []corev1.AttachedVolume) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": node.UID},
		"status":   map[string]any{"volumesAttached": attached},
	})
	if err != nil {
		return err
	}
	written, err := c.env.Client.CoreV1().Nodes().Patch(ctx, node.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	if err == nil {
		c.writtenNodes.Wrote(written)
	}
	return err
}

// detachAll deletes attachments. Unless it is forced, the API has to confirm first that the node does not use the volume:
// the cache may lack the newest.
func (c *controller) detachAll(ctx context.Context, view nodeView, plan *nodePlan) error {
	var newest map[string]bool
	var errs []error
	for _, d := range plan.detach {
		if !d.forced && view.node != nil && newest == nil {
			node, err := c.env.Client.CoreV1().Nodes().Get(ctx, view.name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) || err == nil && node.UID != view.node.UID {
				plan.callAgain(inUseRetry)
				return errors.Join(errs...)
			}
			if err != nil {
				return errors.Join(append(errs, err)...)
			}
			newest = c.memory.inUse(nodeView{name: view.name, node: node})
		}
		if !d.forced && newest[d.attachment.Name] {
			plan.callAgain(inUseRetry)
			continue
		}
		errs = append(errs, c.delete(ctx, d.attachment))
	}
	return errors.Join(errs...)
}

func (c *controller) delete(ctx context.Context, a *storagev1.VolumeAttachment) error {
	c.memory.deletes(a.UID)
	err := c.env.Client.StorageV1().VolumeAttachments().Delete(ctx, a.Name, *metav1.NewPreconditionDeleteOptions(string(a.UID)))
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // it is gone, and the cache will say so
	}
	return err
}

// attach makes an attachment, unless another node has the volume and may not share it.
func (c *controller) attach(ctx context.Context, node string, w *want) (taken bool, err error) {
	if exclusive(w.volume) {
		others, err := c.reserved.take(ctx, w, node)
		if err != nil {
			return false, err
		}
		if len(others) > 0 {
			return true, c.refuse(node, w, others)
		}
	}
	made, err := c.create(ctx, node, w)
	if exclusive(w.volume) {
		c.reserved.ended(w.name, node, made)
	}
	return false, err
}

// create returns the uid of the attachment, also if it was there; empty if that is not known.
func (c *controller) create(ctx context.Context, node string, w *want) (types.UID, error) {
	made, err := c.env.Client.StorageV1().VolumeAttachments().Create(ctx, &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: w.name},
		Spec: storagev1.VolumeAttachmentSpec{
			Attacher: w.volume.Spec.CSI.Driver, NodeName: node,
			Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &w.volume.Name},
		},
	}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		made, err = c.attachmentOf(ctx, w.name)
	}
	if err != nil || made == nil {
		return "", err
	}
	return made.UID, nil
}

// refuse tells the pods of a node who has their volume, once.
func (c *controller) refuse(node string, w *want, others []string) error {
	pods, err := c.usersOn(others, w.volume)
	if err != nil {
		return err
	}
	why := "Volume is already exclusively attached to one node, waiting on detach before it can be attached to another node"
	if len(pods) > 0 {
		var names []string
		for _, p := range pods {
			names = append(names, p.Name)
		}
		slices.Sort(names)
		why = "Volume is already used by pod(s) " + strings.Join(names, ", ")
	}
	if c.memory.news(node, w.name, "taken") { // as upstream, it is not told again when those pods change
		c.tell(w, corev1.EventTypeWarning, reasonFailed, fmt.Sprintf("Waiting for detach for volume %q %s", w.volume.Name, why))
	}
	return nil
}

// tell reports an event on all pods that use a volume.
func (c *controller) tell(w *want, kind, reason, message string) {
	for _, pod := range w.pods {
		c.env.Events.Event(pod, kind, reason, message)
	}
}
