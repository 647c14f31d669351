package csi

import (
	"context"
	"fmt"
	"slices"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/agent/base/wait"
)

const (
	// attachTimeout is how long a Mount waits for the attacher before it says so and begins again. Upstream's.
	attachTimeout = 2 * time.Minute
	// Pauses between looks at what others write.
	lookMin = 100 * time.Millisecond
	lookMax = 2 * time.Second
	// Pauses after something failed that nobody waits for. Upstream's.
	retryMin = 500 * time.Millisecond
	retryMax = 2*time.Minute + 2*time.Second
)

// awaitAttached waits until our Node says that the volume is in use, so that nobody detaches it, and until it is attached. It
// returns what the attacher says to the driver.
func (m *Manager) awaitAttached(ctx context.Context, t *task) (map[string]string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, attachTimeout, fmt.Errorf(
		"timed out waiting for external-attacher of %v CSI driver to attach volume %v", t.id.driver, t.id.handle))
	defer cancel()
	why := fmt.Errorf("volume %q has not been added to the list of VolumesInUse in the node's volume status", t.id.unique())
	for pause := lookMin; ; pause = min(2*pause, lookMax) {
		if m.reportsUse(t.id) {
			publishContext, err := m.attached(ctx, t.id)
			if err == nil {
				return publishContext, nil
			}
			why = err
		}
		if !wait.For(ctx, pause) {
			return nil, fmt.Errorf("%w: %w", context.Cause(ctx), why)
		}
	}
}

// reportsUse tells whether the Node as the API has it lists the volume.
func (m *Manager) reportsUse(i id) bool {
	node := m.Node()
	return node != nil && slices.Contains(node.Status.VolumesInUse, i.unique())
}

func (m *Manager) attached(ctx context.Context, i id) (map[string]string, error) {
	name := attachmentName(i, m.NodeName)
	found, err := m.Client.StorageV1().VolumeAttachments().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("volume %v has GET error for volume attachment %v: %w", i.handle, name, err)
	}
	if err := refusal(found); err != nil {
		return nil, err
	}
	return found.Status.AttachmentMetadata, nil
}

// refusal is why an attachment cannot be used, in upstream's words.
func refusal(a *storagev1.VolumeAttachment) error {
	switch {
	case a.DeletionTimestamp != nil:
		return fmt.Errorf("volume attachment is being deleted")
	case a.Status.Attached:
		return nil
	case a.Status.AttachError != nil:
		return attachError(a.Status.AttachError)
	}
	return fmt.Errorf("it is not attached for volume attachment %v", a.Name)
}
