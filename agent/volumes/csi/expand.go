package csi

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/setpoint-io/setpoint/agent/base/events"
)

// Reasons of events about volumes that grow, upstream's.
const (
	resized      = "FileSystemResizeSuccessful"
	resizeFailed = "VolumeResizeFailed"
	notResized   = "FileSystemResizeFailed"
)

// expand lets a volume that has grown be used to its new size, and says so in the claim. A volume of the old size can be used as
// well, so what fails is told and tried at the next Mount. The caller has the turn.
func (m *Manager) expand(ctx context.Context, t *task, v *volume) {
	claim, err := m.grown(ctx, t)
	if err != nil {
		m.Logger.Warn("cannot see whether a volume has grown", "volume", t.specName(), "err", err)
		return
	}
	if claim == nil {
		return
	}
	if t.source.readOnly {
		m.tellReadOnly(t, v, claim)
		return
	}
	if err := m.nodeExpand(ctx, t); err != nil {
		m.Events.Eventf(events.Pod(t.Pod), corev1.EventTypeWarning, resizeFailed,
			"NodeExpandVolume.NodeExpandVolume failed for volume %q : Expander.NodeExpand failed to expand the volume : %v", t.specName(), err)
		if infeasible(err) {
			err = m.writeClaim(ctx, claim, func(s *corev1.PersistentVolumeClaimStatus) {
				s.AllocatedResourceStatuses = map[corev1.ResourceName]corev1.ClaimResourceStatus{
					corev1.ResourceStorage: corev1.PersistentVolumeClaimNodeResizeInfeasible}
			})
		}
		m.Logger.Warn("cannot expand a volume", "volume", t.specName(), "err", err)
		return
	}
	if err := m.writeClaim(ctx, claim, func(s *corev1.PersistentVolumeClaimStatus) { grow(s, t.PV) }); err != nil {
		m.Logger.Warn("cannot say in its claim that a volume was expanded", "volume", t.specName(), "err", err)
		return
	}
	m.Events.Eventf(events.Pod(t.Pod), corev1.EventTypeNormal, resized,
		"MountVolume.NodeExpandVolume succeeded for volume %q %s", t.specName(), m.NodeName)
}

// tellReadOnly says once for each pod and size that the volume is not expanded.
func (m *Manager) tellReadOnly(t *task, v *volume, claim *corev1.PersistentVolumeClaim) {
	size := t.PV.Spec.Capacity.Storage().String()
	if v.refused[t.Pod.UID] == size {
		return
	}
	v.refused[t.Pod.UID] = size
	for _, about := range []runtime.Object{events.Pod(t.Pod), claim} {
		m.Events.Eventf(about, corev1.EventTypeWarning, notResized,
			"MountVolume.NodeExpandVolume failed for volume %q requested read-only file system", t.specName())
	}
}

// grown is the claim of a volume that this node has to expand; nil if it has none to.
func (m *Manager) grown(ctx context.Context, t *task) (*corev1.PersistentVolumeClaim, error) {
	if t.paths.inline || t.PV.Spec.ClaimRef == nil || !t.can(spec.NodeServiceCapability_RPC_EXPAND_VOLUME) {
		return nil, nil
	}
	ref := t.PV.Spec.ClaimRef
	claim, err := m.Client.CoreV1().PersistentVolumeClaims(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	has, holds := claim.Status.Capacity[corev1.ResourceStorage], t.PV.Spec.Capacity[corev1.ResourceStorage]
	given := claim.Status.AllocatedResourceStatuses[corev1.ResourceStorage]
	if holds.Cmp(has) <= 0 || given == corev1.PersistentVolumeClaimNodeResizeInfeasible {
		return nil, nil
	}
	return claim, nil
}

func (m *Manager) nodeExpand(ctx context.Context, t *task) error {
	secrets, err := m.secrets(ctx, "NodeExpandSecretRef", t.source.expandSecret)
	if err != nil {
		return err
	}
	holds := t.PV.Spec.Capacity[corev1.ResourceStorage]
	request := &spec.NodeExpandVolumeRequest{
		VolumeId: t.id.handle, VolumePath: t.paths.target(t.Pod.UID), CapacityRange: &spec.CapacityRange{RequiredBytes: holds.Value()},
		VolumeCapability: t.capability(), Secrets: secrets,
	}
	if t.can(spec.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME) {
		request.StagingTargetPath = t.paths.staging()
	}
	_, err = call(ctx, t.driver.node.NodeExpandVolume, request)
	return err
}

// infeasible tells whether asking again cannot help. Upstream's list.
func infeasible(err error) bool {
	switch status.Code(err) {
	case codes.InvalidArgument, codes.OutOfRange, codes.NotFound:
		return true
	}
	return false
}

// grow is what a claim says when its volume has its new size everywhere.
func grow(s *corev1.PersistentVolumeClaimStatus, pv *corev1.PersistentVolume) {
	if s.Capacity == nil {
		s.Capacity = corev1.ResourceList{}
	}
	s.Capacity[corev1.ResourceStorage] = pv.Spec.Capacity[corev1.ResourceStorage]
	delete(s.AllocatedResourceStatuses, corev1.ResourceStorage)
	s.Conditions = slices.DeleteFunc(s.Conditions, func(c corev1.PersistentVolumeClaimCondition) bool {
		switch c.Type {
		case corev1.PersistentVolumeClaimResizing, corev1.PersistentVolumeClaimFileSystemResizePending,
			corev1.PersistentVolumeClaimControllerResizeError, corev1.PersistentVolumeClaimNodeResizeError:
			return true
		}
		return false
	})
}

// writeClaim patches what change makes of the status, of this claim and no later one of its name.
func (m *Manager) writeClaim(
	ctx context.Context, claim *corev1.PersistentVolumeClaim, change func(*corev1.PersistentVolumeClaimStatus),
) error {
	next := claim.DeepCopy()
	change(&next.Status)
	identity := metav1.ObjectMeta{UID: claim.UID}
	was, err := json.Marshal(corev1.PersistentVolumeClaim{Status: claim.Status})
	if err != nil {
		return err
	}
	is, err := json.Marshal(corev1.PersistentVolumeClaim{ObjectMeta: identity, Status: next.Status})
	if err != nil {
		return err
	}
	patch, err := strategicpatch.CreateTwoWayMergePatch(was, is, corev1.PersistentVolumeClaim{})
	if err != nil {
		return fmt.Errorf("patch of the claim: %w", err)
	}
	_, err = m.Client.CoreV1().PersistentVolumeClaims(claim.Namespace).Patch(
		ctx, claim.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}
