package volumes

import (
	"context"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/agent/runtime/podconfig"
)

// defaultFileMode is upstream's for files from the API.
const defaultFileMode = 0o644

// file of a volume, by its path relative to the volume.
type file struct {
	data []byte
	mode os.FileMode
	// owner is a user id, or nil for root.
	owner *int64
}

// content writes a volume made of API objects.
func (m *Manager) content(ctx context.Context, in Input, v *corev1.Volume) (string, error) {
	plugin, files, err := m.gather(ctx, in, v)
	if err != nil {
		return "", err
	}
	dir := m.dir(in.Pod, plugin, v.Name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	if plugin == "secret" || plugin == "projected" {
		if err := m.tmpfs(dir, "mode=0755"); err != nil { // secrets stay off the disk
			return "", err
		}
	}
	return dir, writeAtomically(dir, files, fsGroup(in.Pod))
}

// gather collects the files of a volume and names its plugin.
func (m *Manager) gather(ctx context.Context, in Input, v *corev1.Volume) (plugin string, files map[string]file, err error) {
	files = map[string]file{}
	switch {
	case v.ConfigMap != nil:
		err = m.addConfigMap(ctx, in, files, v.ConfigMap.Name, v.ConfigMap.Items, v.ConfigMap.DefaultMode, v.ConfigMap.Optional)
		return "configmap", files, err
	case v.Secret != nil:
		err = m.addSecret(ctx, in, files, v.Secret.SecretName, v.Secret.Items, v.Secret.DefaultMode, v.Secret.Optional)
		return "secret", files, err
	case v.DownwardAPI != nil:
		err = addDownward(in, files, v.DownwardAPI.Items, v.DownwardAPI.DefaultMode)
		return "downward-api", files, err
	default:
		return "projected", files, m.addProjected(ctx, in, files, v)
	}
}

func (m *Manager) addProjected(ctx context.Context, in Input, files map[string]file, v *corev1.Volume) error {
	mode := v.Projected.DefaultMode
	for i := range v.Projected.Sources {
		s := &v.Projected.Sources[i]
		var err error
		switch {
		case s.ConfigMap != nil:
			err = m.addConfigMap(ctx, in, files, s.ConfigMap.Name, s.ConfigMap.Items, mode, s.ConfigMap.Optional)
		case s.Secret != nil:
			err = m.addSecret(ctx, in, files, s.Secret.Name, s.Secret.Items, mode, s.Secret.Optional)
		case s.DownwardAPI != nil:
			err = addDownward(in, files, s.DownwardAPI.Items, mode)
		case s.ServiceAccountToken != nil:
			err = m.addToken(ctx, in, files, v.Name, s.ServiceAccountToken, mode)
		case s.ClusterTrustBundle != nil:
			err = m.addTrustBundle(ctx, in, files, s.ClusterTrustBundle, mode)
		case s.PodCertificate != nil:
			err = m.addCertificate(ctx, in, files, certificateKey{in.Pod.UID, v.Name, i}, s.PodCertificate, mode)
		default:
			err = ErrUnsupported
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (m *Manager) addConfigMap(
	ctx context.Context,
	in Input,
	files map[string]file,
	name string,
	items []corev1.KeyToPath,
	mode *int32,
	optional *bool,
) error {
	cm, err := m.Objects.ConfigMap(ctx, in.Pod.Namespace, name)
	if forgiven(err, optional) {
		return nil
	}
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("configmap %q not found", name)
	}
	if err != nil {
		return err
	}
	data := map[string][]byte{}
	for k, v := range cm.Data {
		data[k] = []byte(v)
	}
	for k, v := range cm.BinaryData {
		data[k] = v
	}
	return addItems(files, data, items, mode, optional, "configmap")
}

func (m *Manager) addSecret(
	ctx context.Context,
	in Input,
	files map[string]file,
	name string,
	items []corev1.KeyToPath,
	mode *int32,
	optional *bool,
) error {
	secret, err := m.Objects.Secret(ctx, in.Pod.Namespace, name)
	if forgiven(err, optional) {
		return nil
	}
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("secret %q not found", name)
	}
	if err != nil {
		return err
	}
	return addItems(files, secret.Data, items, mode, optional, "secret")
}

func forgiven(err error, optional *bool) bool {
	return apierrors.IsNotFound(err) && optional != nil && *optional
}

// addItems adds all keys, or only the listed ones under their paths.
func addItems(files map[string]file, data map[string][]byte, items []corev1.KeyToPath, mode *int32, optional *bool, kind string) error {
	if len(items) == 0 {
		for k, v := range data {
			files[k] = file{data: v, mode: fileMode(nil, mode)}
		}
		return nil
	}
	for _, item := range items {
		v, ok := data[item.Key]
		if !ok && optional != nil && *optional {
			continue
		}
		if !ok {
			return fmt.Errorf("%s references non-existent %s key: %s", "volume", kind, item.Key)
		}
		files[item.Path] = file{data: v, mode: fileMode(item.Mode, mode)}
	}
	return nil
}

func fileMode(own, shared *int32) os.FileMode {
	switch {
	case own != nil:
		return os.FileMode(*own)
	case shared != nil:
		return os.FileMode(*shared)
	default:
		return defaultFileMode
	}
}

func addDownward(in Input, files map[string]file, items []corev1.DownwardAPIVolumeFile, mode *int32) error {
	for i := range items {
		item := &items[i]
		var value string
		var err error
		switch {
		case item.FieldRef != nil:
			value, err = podconfig.Field(in.Pod, item.FieldRef.FieldPath, in.PodIPs, in.HostIPs)
		case item.ResourceFieldRef != nil:
			value, err = podconfig.Resource(in.Pod, nil, item.ResourceFieldRef, in.Allocatable)
		}
		if err != nil {
			return err
		}
		files[item.Path] = file{data: []byte(value), mode: fileMode(item.Mode, mode)}
	}
	return nil
}

func metaWithUID(uid types.UID) metav1.ObjectMeta { return metav1.ObjectMeta{UID: uid} }
