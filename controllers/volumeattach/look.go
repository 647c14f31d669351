package volumeattach

import (
	"context"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/component-helpers/storage/ephemeral"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
)

// nodeView is what a pass knows of a node.
type nodeView struct {
	name  string
	node  *corev1.Node // nil: it is gone
	wants []*want      // sorted by name
	has   []*holding   // sorted by name
	inUse map[string]bool
	now   time.Time
}

// want is a volume that pods of the node use.
type want struct {
	name   string // of the attachment
	volume *corev1.PersistentVolume
	pods   []*corev1.Pod
}

// holding is an attachment of the node.
type holding struct {
	attachment *storagev1.VolumeAttachment
	title      corev1.UniqueVolumeName // empty if the volume is gone
	claimed    bool                    // a pod of the node names the claim that the volume is bound to
	since      time.Time               // when it was first seen that no pod uses the volume; zero: it was not
}

// look reads all that a pass needs.
func (c *controller) look(ctx context.Context, name string) (nodeView, error) {
	view := nodeView{name: name, now: c.env.Now()}
	node, err := c.writtenNodes.Get(c.nodes, reconcile.Key{Name: name})
	if err != nil && !apierrors.IsNotFound(err) {
		return view, err
	}
	if err == nil {
		view.node = node
	}
	pods, err := c.pods.ByIndex(byNode, name)
	if err != nil {
		return view, err
	}
	claimed := map[reconcile.Key]bool{}
	if view.wants, err = c.wanted(name, pods, claimed); err != nil {
		return view, err
	}
	if view.has, err = c.held(ctx, name, claimed); err != nil {
		return view, err
	}
	view.inUse = c.memory.inUse(view)
	return view, nil
}

// wanted are the volumes that the pods use, and fills claimed with all claims that they name.
func (c *controller) wanted(node string, pods []*corev1.Pod, claimed map[reconcile.Key]bool) ([]*want, error) {
	byName := map[string]*want{}
	for _, pod := range pods {
		if !uses(pod) {
			continue
		}
		for i := range pod.Spec.Volumes {
			key, ok := claimOf(pod, &pod.Spec.Volumes[i])
			if !ok {
				continue
			}
			claimed[key] = true
			volume, err := c.boundTo(pod, &pod.Spec.Volumes[i], key)
			if err != nil {
				return nil, err
			}
			if volume == nil || !c.attachable(volume.Spec.CSI.Driver) {
				continue
			}
			name := AttachmentName(volume.Spec.CSI.VolumeHandle, volume.Spec.CSI.Driver, node)
			if byName[name] == nil {
				byName[name] = &want{name: name, volume: volume}
			}
			if w := byName[name]; !slices.Contains(w.pods, pod) {
				w.pods = append(w.pods, pod)
			}
		}
	}
	var wants []*want
	for _, w := range byName {
		slices.SortFunc(w.pods, func(a, b *corev1.Pod) int {
			return strings.Compare(reconcile.KeyOf(a).String(), reconcile.KeyOf(b).String())
		})
		wants = append(wants, w)
	}
	slices.SortFunc(wants, func(a, b *want) int { return strings.Compare(a.name, b.name) })
	return wants, nil
}

// boundTo is the CSI volume of a pod's claim; nil if it has none yet, or not for this pod.
func (c *controller) boundTo(pod *corev1.Pod, v *corev1.Volume, key reconcile.Key) (*corev1.PersistentVolume, error) {
	claim, err := c.claims.Get(key)
	if err != nil {
		return nil, reconcile.IgnoreNotFound(err)
	}
	if claim.Status.Phase != corev1.ClaimBound || claim.Spec.VolumeName == "" || v.Ephemeral != nil && ephemeral.VolumeIsForPod(pod, claim) != nil {
		return nil, nil
	}
	volume, err := c.volumes.Get(reconcile.Key{Name: claim.Spec.VolumeName})
	if err != nil {
		return nil, reconcile.IgnoreNotFound(err)
	}
	if volume.Spec.CSI == nil || volume.Spec.ClaimRef == nil || volume.Spec.ClaimRef.UID != claim.UID {
		return nil, nil
	}
	return volume, nil
}

// attachable tells whether a driver's volumes have to be attached. As upstream, one without a CSIDriver object's are.
func (c *controller) attachable(driver string) bool {
	found, err := c.drivers.Get(reconcile.Key{Name: driver})
	return err != nil || found.Spec.AttachRequired == nil || *found.Spec.AttachRequired
}

// held are the attachments of a node that this controller answers for.
func (c *controller) held(ctx context.Context, node string, claimed map[reconcile.Key]bool) ([]*holding, error) {
	deleted := c.memory.deleted() // before the cache: what the cache shows in between is forgotten there
	found, err := c.attachments.ByIndex(byAttachedNode, node)
	if err != nil {
		return nil, err
	}
	var has []*holding
	for _, a := range found {
		volume, err := c.volumeOf(a)
		if err != nil {
			return nil, err
		}
		if !isOurs(a, volume) {
			continue
		}
		if a, err = c.newest(ctx, a, deleted[a.UID]); err != nil {
			return nil, err
		}
		h := &holding{attachment: a, since: c.memory.unusedSince(node, a)}
		if volume != nil && volume.Spec.CSI != nil {
			h.title = volumeName(volume.Spec.CSI)
		}
		if volume != nil && volume.Spec.ClaimRef != nil {
			key := reconcile.Key{Namespace: volume.Spec.ClaimRef.Namespace, Name: volume.Spec.ClaimRef.Name}
			h.claimed = claimed[key] && c.attachable(a.Spec.Attacher)
		}
		has = append(has, h)
	}
	slices.SortFunc(has, func(a, b *holding) int { return strings.Compare(a.attachment.Name, b.attachment.Name) })
	return has, nil
}

// volumeOf is the volume that an attachment names; nil if it is gone.
func (c *controller) volumeOf(a *storagev1.VolumeAttachment) (*corev1.PersistentVolume, error) {
	if a.Spec.Source.PersistentVolumeName == nil {
		return nil, nil
	}
	volume, err := c.volumes.Get(reconcile.Key{Name: *a.Spec.Source.PersistentVolumeName})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return volume, err
}

// claimOf is the claim of a pod's volume, if it has one.
func claimOf(pod *corev1.Pod, v *corev1.Volume) (reconcile.Key, bool) {
	switch {
	case v.PersistentVolumeClaim != nil:
		return reconcile.Key{Namespace: pod.Namespace, Name: v.PersistentVolumeClaim.ClaimName}, true
	case v.Ephemeral != nil:
		return reconcile.Key{Namespace: pod.Namespace, Name: ephemeral.VolumeClaimName(pod, v)}, true
	}
	return reconcile.Key{}, false
}

// uses tells whether a pod uses its volumes on a node: it has one, and its containers have not ended for good.
func uses(pod *corev1.Pod) bool {
	if pod.Spec.NodeName == "" || pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded {
		return false
	}
	return pod.DeletionTimestamp == nil ||
		slices.ContainsFunc(pod.Status.InitContainerStatuses, runs) ||
		slices.ContainsFunc(pod.Status.ContainerStatuses, runs) ||
		slices.ContainsFunc(pod.Status.EphemeralContainerStatuses, runs)
}

func runs(s corev1.ContainerStatus) bool { return s.State.Terminated == nil && s.State.Waiting == nil }
