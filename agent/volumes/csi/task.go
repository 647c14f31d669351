package csi

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// task is one Mount, and what it found out.
type task struct {
	Volume
	id     id
	paths  paths
	driver *driver
	info   driverInfo
	// source is what both forms of a volume say.
	source         source
	publishContext map[string]string
	// label is the SELinux label with which it is mounted, "" for none.
	label string
}

// driverInfo is what the cluster says of a driver in its CSIDriver object. The zero value is that of upstream's defaults for
// a driver without one, but for attach.
type driverInfo struct {
	attach, podInfo, republish, tokensInSecrets, mountsLabelled bool
	tokens                                                      []storagev1.TokenRequest
	group                                                       storagev1.FSGroupPolicy
}

// source is what a volume says of itself, wherever it is written.
type source struct {
	fsType         string
	attributes     map[string]string
	options        []string
	access         []corev1.PersistentVolumeAccessMode
	readOnly       bool
	publishSecret  *corev1.SecretReference
	stageSecret    *corev1.SecretReference
	expandSecret   *corev1.SecretReference
	driver, handle string
	lifecycle      storagev1.VolumeLifecycleMode
	block          bool
}

// task gathers what a Mount needs before the driver is asked for anything.
func (m *Manager) task(ctx context.Context, v Volume) (*task, error) {
	if !cache.WaitForCacheSync(ctx.Done(), m.synced) {
		return nil, errors.New("the CSIDrivers of the cluster are not known yet")
	}
	t := &task{Volume: v, source: sourceOf(&v)}
	t.id = id{t.source.driver, t.source.handle}
	t.paths = m.pathsOf(t.id, v.specName(), t.source.block, v.PV == nil)
	object, err := m.objects.Get(t.id.driver)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, err
	}
	if err != nil {
		object = nil
	}
	if err := allows(object, t.source.lifecycle, t.id.driver); err != nil {
		return nil, fmt.Errorf("kubernetes.io/csi: mounter.SetupAt failed to check volume lifecycle mode: %w", err)
	}
	t.info = infoOf(object)
	t.info.attach = t.info.attach && v.PV != nil
	t.label, err = m.mountLabel(t)
	return t, err
}

func sourceOf(v *Volume) source {
	if v.PV == nil {
		return inlineSource(v)
	}
	s := v.PV.Spec.CSI
	out := source{
		fsType: s.FSType, attributes: s.VolumeAttributes, options: v.PV.Spec.MountOptions, access: v.PV.Spec.AccessModes, readOnly: v.ReadOnly,
		publishSecret: s.NodePublishSecretRef, stageSecret: s.NodeStageSecretRef, expandSecret: s.NodeExpandSecretRef,
		driver: s.Driver, handle: s.VolumeHandle, lifecycle: storagev1.VolumeLifecyclePersistent,
		block: v.PV.Spec.VolumeMode != nil && *v.PV.Spec.VolumeMode == corev1.PersistentVolumeBlock,
	}
	return out
}

func inlineSource(v *Volume) source {
	s := v.Inline
	out := source{
		attributes: s.VolumeAttributes, readOnly: s.ReadOnly != nil && *s.ReadOnly,
		driver: s.Driver, handle: inlineHandle(v.Pod.UID, v.Name), lifecycle: storagev1.VolumeLifecycleEphemeral,
	}
	if s.FSType != nil {
		out.fsType = *s.FSType
	}
	if s.NodePublishSecretRef != nil {
		out.publishSecret = &corev1.SecretReference{Namespace: v.Pod.Namespace, Name: s.NodePublishSecretRef.Name}
	}
	return out
}

// allows says whether a driver has volumes of this mode, in upstream's words. Without an object it has persistent ones.
func allows(object *storagev1.CSIDriver, mode storagev1.VolumeLifecycleMode, driver string) error {
	switch {
	case object == nil && mode == storagev1.VolumeLifecycleEphemeral:
		return fmt.Errorf("volume mode %q not supported by driver %s (no CSIDriver object)", mode, driver)
	case object == nil, slices.Contains(object.Spec.VolumeLifecycleModes, mode):
		return nil
	case len(object.Spec.VolumeLifecycleModes) == 0 && mode == storagev1.VolumeLifecyclePersistent:
		return nil
	}
	return fmt.Errorf("volume mode %q not supported by driver %s (only supports %q)", mode, driver, object.Spec.VolumeLifecycleModes)
}

func infoOf(object *storagev1.CSIDriver) driverInfo {
	info := driverInfo{attach: true, group: storagev1.ReadWriteOnceWithFSTypeFSGroupPolicy}
	if object == nil {
		return info
	}
	isTrue := func(b *bool) bool { return b != nil && *b }
	s := &object.Spec
	info.attach = s.AttachRequired == nil || *s.AttachRequired
	info.podInfo, info.republish = isTrue(s.PodInfoOnMount), isTrue(s.RequiresRepublish)
	info.mountsLabelled = isTrue(s.SELinuxMount)
	info.tokens, info.tokensInSecrets = s.TokenRequests, isTrue(s.ServiceAccountTokenInSecrets)
	if s.FSGroupPolicy != nil {
		info.group = *s.FSGroupPolicy
	}
	return info
}

// step is upstream's name of a step, which is another one for block devices.
func (t *task) step(files, block string) string {
	if t.paths.block {
		return block
	}
	return files
}

// can tells whether the driver has a capability; one that is not there has none.
func (t *task) can(what spec.NodeServiceCapability_RPC_Type) bool {
	return t.driver != nil && t.driver.can[what]
}

// secrets reads one, in the names that upstream's errors have.
func (m *Manager) secrets(ctx context.Context, field string, ref *corev1.SecretReference) (map[string]string, error) {
	out := map[string]string{}
	if ref == nil {
		return out, nil
	}
	found, err := m.Client.CoreV1().Secrets(ref.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("fetching %s %s/%s failed: %w", field, ref.Namespace, ref.Name, err)
	}
	for key, value := range found.Data {
		out[key] = string(value)
	}
	return out, nil
}

// podInfo is what a driver is told of the pod if it asks for that.
func (t *task) podInfo() map[string]string {
	return map[string]string{
		"csi.storage.k8s.io/pod.name":            t.Pod.Name,
		"csi.storage.k8s.io/pod.namespace":       t.Pod.Namespace,
		"csi.storage.k8s.io/pod.uid":             string(t.Pod.UID),
		"csi.storage.k8s.io/serviceAccount.name": t.Pod.Spec.ServiceAccountName,
		"csi.storage.k8s.io/ephemeral":           strconv.FormatBool(t.paths.inline),
	}
}

// merged adds to a map that somebody else holds.
func merged(base, more map[string]string) map[string]string {
	if len(more) == 0 {
		return base
	}
	out := maps.Clone(base)
	if out == nil {
		out = map[string]string{}
	}
	maps.Copy(out, more)
	return out
}
