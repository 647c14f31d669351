package volumeattach

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
)

const (
	// pluginPrefix begins the name of a CSI volume in the status of a node.
	pluginPrefix = "kubernetes.io/csi/"
	// handleSeparator stands between the driver and the handle in such a name.
	handleSeparator = "^"
)

// namePattern matches the names that this controller and upstream's give.
var namePattern = regexp.MustCompile(`^csi-[0-9a-f]{64}$`)

// AttachmentName is upstream's name of the VolumeAttachment of a volume on a node.
func AttachmentName(handle, driver, node string) string {
	sum := sha256.Sum256([]byte(handle + driver + node))
	return "csi-" + hex.EncodeToString(sum[:])
}

// volumeName is how the status of a node calls a CSI volume.
func volumeName(source *corev1.CSIPersistentVolumeSource) corev1.UniqueVolumeName {
	return corev1.UniqueVolumeName(pluginPrefix + source.Driver + handleSeparator + source.VolumeHandle)
}

// attachmentNamed is the name of the VolumeAttachment of a volume that the status of a node names; empty if it is no CSI volume.
func attachmentNamed(name corev1.UniqueVolumeName, node string) string {
	driver, handle, ok := strings.Cut(strings.TrimPrefix(string(name), pluginPrefix), handleSeparator)
	if !ok || !strings.HasPrefix(string(name), pluginPrefix) {
		return ""
	}
	return AttachmentName(handle, driver, node)
}

// isOurs tells whether an attachment is one that this controller or upstream's makes. volume is the one that it names; nil
// if there is none.
func isOurs(a *storagev1.VolumeAttachment, volume *corev1.PersistentVolume) bool {
	if a.Spec.Source.PersistentVolumeName == nil {
		return false
	}
	if volume == nil || volume.Spec.CSI == nil {
		return namePattern.MatchString(a.Name)
	}
	return a.Name == AttachmentName(volume.Spec.CSI.VolumeHandle, a.Spec.Attacher, a.Spec.NodeName)
}

// exclusive tells whether a volume may be attached to one node only. Without access modes its driver decides.
func exclusive(volume *corev1.PersistentVolume) bool {
	for _, mode := range volume.Spec.AccessModes {
		if mode == corev1.ReadWriteMany || mode == corev1.ReadOnlyMany {
			return false
		}
	}
	return len(volume.Spec.AccessModes) > 0
}
