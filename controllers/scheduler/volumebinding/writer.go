package volumebinding

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/component-helpers/storage/volume"
	"k8s.io/utils/clock"

	"github.com/setpoint-io/setpoint/controllers/scheduler/plugin"
)

// lookInterval is how often a waiting pod looks whether its claims are bound. Upstream's.
const lookInterval = time.Second

var (
	// ErrPodGone: the pod ended while its volumes were waited for.
	ErrPodGone = errors.New("the pod is gone")

	errVolumesLate  = errors.New("timed out waiting for volumes to be bound")
	errNodeForgone  = errors.New("another node was selected for the claim, or none")
	errVolumeForgot = errors.New("the volume was given to another claim")
)

// Writer gives the late claims of a pod that has a node their volumes, and waits until they are bound. It is safe for concurrent use.
type Writer struct {
	Client kubernetes.Interface
	// Clock is what waiting goes by.
	Clock   clock.WithTicker
	Pods    corelisters.PodLister
	Claims  corelisters.PersistentVolumeClaimLister
	Volumes corelisters.PersistentVolumeLister
}

// Bind writes the choice and waits, for so long, for the controller that binds. It returns ErrPodGone, an error of the API, or why the
// claims will not be bound.
func (w *Writer) Bind(ctx context.Context, pod *corev1.Pod, node string, choice plugin.VolumeChoice, longest time.Duration) error {
	for _, b := range choice.Bind {
		next, changed, err := volume.GetBindVolumeToClaim(b.Volume, b.Claim)
		if err == nil && changed {
			_, err = w.Client.CoreV1().PersistentVolumes().Update(ctx, next, metav1.UpdateOptions{})
		}
		if err != nil {
			return err
		}
	}
	for _, claim := range choice.Provision {
		if claim.Annotations[volume.AnnSelectedNode] == node {
			continue
		}
		next := claim.DeepCopy()
		metav1.SetMetaDataAnnotation(&next.ObjectMeta, volume.AnnSelectedNode, node)
		if _, err := w.Client.CoreV1().PersistentVolumeClaims(claim.Namespace).Update(ctx, next, metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	return w.wait(ctx, pod, node, choice, longest)
}

// wait returns when all claims are bound, or never will be.
func (w *Writer) wait(ctx context.Context, pod *corev1.Pod, node string, choice plugin.VolumeChoice, longest time.Duration) error {
	ticker, limit := w.Clock.NewTicker(lookInterval), w.Clock.NewTimer(longest)
	defer ticker.Stop()
	defer limit.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-limit.C():
			return errVolumesLate
		case <-ticker.C():
		}
		if bound, err := w.bound(pod, node, choice); bound || err != nil {
			return err
		}
	}
}

// bound tells whether the caches show all claims as bound.
func (w *Writer) bound(pod *corev1.Pod, node string, choice plugin.VolumeChoice) (bool, error) {
	if found, err := w.Pods.Pods(pod.Namespace).Get(pod.Name); err != nil || found.UID != pod.UID {
		return false, ErrPodGone
	}
	all := true
	for _, b := range choice.Bind {
		v, err := w.Volumes.Get(b.Volume.Name)
		if err != nil {
			return false, err
		}
		if v.ResourceVersion != b.Volume.ResourceVersion && !volume.IsVolumeBoundToClaim(v, b.Claim) {
			return false, fmt.Errorf("volume %s: %w", v.Name, errVolumeForgot)
		}
		claim, err := w.claim(b.Claim)
		if err != nil {
			return false, err
		}
		all = all && IsBound(claim)
	}
	for _, wanted := range choice.Provision {
		claim, err := w.claim(wanted)
		if err != nil {
			return false, err
		}
		if claim.ResourceVersion != wanted.ResourceVersion && claim.Annotations[volume.AnnSelectedNode] != node {
			return false, fmt.Errorf("claim %s: %w", claim.Name, errNodeForgone)
		}
		all = all && IsBound(claim)
	}
	return all, nil
}

// claim is the newest version that the cache has of a claim.
func (w *Writer) claim(of *corev1.PersistentVolumeClaim) (*corev1.PersistentVolumeClaim, error) {
	claim, err := w.Claims.PersistentVolumeClaims(of.Namespace).Get(of.Name)
	if err == nil && claim.UID != of.UID {
		return nil, apierrors.NewNotFound(corev1.Resource("persistentvolumeclaims"), of.Name)
	}
	return claim, err
}

// IsBound tells whether the controller has finished binding a claim.
func IsBound(claim *corev1.PersistentVolumeClaim) bool {
	return claim.Spec.VolumeName != "" && metav1.HasAnnotation(claim.ObjectMeta, volume.AnnBindCompleted)
}
