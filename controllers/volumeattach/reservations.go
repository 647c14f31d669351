package volumeattach

import (
	"context"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
)

// reservations are the attachments that were made, or are being made, and that the cache has not shown yet. They keep two
// nodes from attaching the same exclusive volume. An entry goes when the cache shows it or the API does not have it any
// more, so there are few.
type reservations struct {
	get func(ctx context.Context, name string) (*storagev1.VolumeAttachment, error)
	// holders are the other nodes that have the volume by the cache.
	holders func(w *want, node string) ([]string, error)

	mu   sync.Mutex
	made map[string]reservation // by the attachment's name
}

type reservation struct {
	node   string
	making bool      // the create is under way
	uid    types.UID // empty: the outcome of the create is not known
}

// take reserves an exclusive volume for a node, unless other nodes have it, which it returns. Reading the API under the lock
// is rare: only a volume that another node has just been given needs it.
func (r *reservations) take(ctx context.Context, w *want, node string) ([]string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	source := w.volume.Spec.CSI
	for name, other := range r.made {
		if other.node == node || name != AttachmentName(source.VolumeHandle, source.Driver, other.node) {
			continue
		}
		if !other.making {
			found, err := r.get(ctx, name)
			if err != nil {
				return nil, err
			}
			if found == nil {
				delete(r.made, name)
				continue
			}
		}
		return []string{other.node}, nil
	}
	if others, err := r.holders(w, node); err != nil || len(others) > 0 {
		return others, err
	}
	r.put(w.name, reservation{node: node, making: true})
	return nil, nil
}

// ended says how a create ended; uid is empty if that is not known.
func (r *reservations) ended(name, node string, uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.put(name, reservation{node: node, uid: uid})
}

// found keeps what a former leader made.
func (r *reservations) found(a *storagev1.VolumeAttachment) {
	if namePattern.MatchString(a.Name) {
		r.ended(a.Name, a.Spec.NodeName, a.UID)
	}
}

// shown forgets what the cache shows, or has shown.
func (r *reservations) shown(a *storagev1.VolumeAttachment) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if made, ok := r.made[a.Name]; ok && made.uid == a.UID {
		delete(r.made, a.Name)
	}
}

func (r *reservations) put(name string, made reservation) {
	if r.made == nil {
		r.made = map[string]reservation{}
	}
	r.made[name] = made
}

// holders are the other nodes that the cache shows a volume attached to, under whatever name of a PersistentVolume.
func (c *controller) holders(w *want, node string) ([]string, error) {
	source := w.volume.Spec.CSI
	found, err := c.attachments.ByIndex(byDriver, source.Driver)
	var others []string
	for _, a := range found {
		if a.Spec.NodeName != node && a.Name == AttachmentName(source.VolumeHandle, source.Driver, a.Spec.NodeName) {
			others = append(others, a.Spec.NodeName)
		}
	}
	slices.Sort(others)
	return others, err
}

// usersOn are the pods on the nodes that use the claim of a volume.
func (c *controller) usersOn(nodes []string, volume *corev1.PersistentVolume) ([]*corev1.Pod, error) {
	ref := volume.Spec.ClaimRef
	found, err := c.pods.ByIndex(byClaim, reconcile.Key{Namespace: ref.Namespace, Name: ref.Name}.String())
	return slices.DeleteFunc(found, func(p *corev1.Pod) bool { return !uses(p) || !slices.Contains(nodes, p.Spec.NodeName) }), err
}
