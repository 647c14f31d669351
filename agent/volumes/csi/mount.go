package csi

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	spec "github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/setpoint-io/setpoint/agent/base/events"
	"github.com/setpoint-io/setpoint/agent/base/machine"
)

// stage makes the volume ready on this node, once for all pods. The caller has the turn.
func (m *Manager) stage(ctx context.Context, t *task, v *volume) error {
	if t.paths.inline || v.staged || !t.can(spec.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME) {
		return nil
	}
	is, err := mountedAt(t.paths.staging())
	if err != nil {
		return err
	}
	if v.staged = is; v.staged { // by an earlier agent
		return nil
	}
	secrets, err := m.secrets(ctx, "NodeStageSecretRef", t.source.stageSecret)
	if err != nil {
		return err
	}
	data := t.record(m.NodeName)
	if err := data.save(t.paths.stagingRecord()); err != nil {
		return err
	}
	if err := os.MkdirAll(t.paths.staging(), 0o750); err != nil {
		return err
	}
	defer m.tellSlow(t.Pod, t.paths, events.FailedMount, "NodeStageVolume")()
	_, err = call(ctx, t.driver.node.NodeStageVolume, &spec.NodeStageVolumeRequest{
		VolumeId: t.id.handle, PublishContext: t.publishContext, StagingTargetPath: t.paths.staging(),
		VolumeCapability: t.capability(), Secrets: secrets, VolumeContext: t.source.attributes,
	})
	if err != nil && !uncertain(err) {
		return errors.Join(err, t.paths.clearStaging())
	}
	v.staged = err == nil
	return err
}

// publish gives the volume to the pod. One that it has is published again only if the driver asked for that. The caller has the turn.
func (m *Manager) publish(ctx context.Context, t *task, v *volume) error {
	has, err := t.has(v)
	if err != nil || has && !t.info.republish {
		return err
	}
	if err := m.onlyOne(t, v); err != nil {
		return err
	}
	request, err := m.publishRequest(ctx, t)
	if err != nil {
		return err
	}
	data := t.record(m.NodeName)
	if err := data.save(t.paths.podRecord(t.Pod.UID)); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(request.TargetPath), 0o750); err != nil {
		return err
	}
	defer m.tellSlow(t.Pod, t.paths, events.FailedMount, "NodePublishVolume")()
	_, err = call(ctx, t.driver.node.NodePublishVolume, request)
	switch {
	case err == nil:
		v.published[t.Pod.UID] = true
	case !has && !uncertain(err): // else the pod sees what is there
		return errors.Join(err, t.paths.clearTarget(t.Pod.UID))
	}
	return err
}

// has tells whether the pod has the volume: this run or, if it is mounted, an earlier one has published it.
func (t *task) has(v *volume) (bool, error) {
	if v.published[t.Pod.UID] {
		return true, nil
	}
	is, err := mountedAt(t.paths.target(t.Pod.UID))
	v.published[t.Pod.UID] = is
	return is, err
}

func (m *Manager) publishRequest(ctx context.Context, t *task) (*spec.NodePublishVolumeRequest, error) {
	secrets, err := m.secrets(ctx, "NodePublishSecretRef", t.source.publishSecret)
	if err != nil {
		return nil, err
	}
	volumeContext := t.source.attributes
	if t.info.podInfo {
		volumeContext = merged(volumeContext, t.podInfo())
	}
	tokens, err := t.tokens(ctx)
	switch {
	case err != nil:
		return nil, fmt.Errorf("kubernetes.io/csi: mounter.SetUpAt failed to get service account token attributes: %w", err)
	case t.info.tokensInSecrets:
		secrets = merged(secrets, tokens)
	default:
		volumeContext = merged(volumeContext, tokens)
	}
	request := &spec.NodePublishVolumeRequest{
		VolumeId: t.id.handle, PublishContext: t.publishContext, TargetPath: t.paths.target(t.Pod.UID), VolumeCapability: t.capability(),
		Readonly: t.source.readOnly, Secrets: secrets, VolumeContext: volumeContext,
	}
	if !t.paths.inline && t.can(spec.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME) {
		request.StagingTargetPath = t.paths.staging()
	}
	return request, nil
}

// mountedAt tells whether something is mounted on path.
func mountedAt(path string) (bool, error) {
	resolved, err := machine.Resolve(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	mounts, err := machine.MountsBelow(resolved)
	for _, at := range mounts {
		if at == resolved {
			return true, nil
		}
	}
	return false, err
}
