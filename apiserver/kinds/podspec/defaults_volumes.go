package podspec

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/setpoint-io/setpoint/apiserver/kinds/claim"
	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
)

const (
	// defaultFileMode is the mode of files made from an object, as -rw-r--r--.
	defaultFileMode = 0o644
	// defaultTokenSeconds is how long a projected token is valid.
	defaultTokenSeconds = 60 * 60
)

// defaultVolume fills a volume; one without any source is an empty directory.
func defaultVolume(volume *corev1.Volume) {
	source := &volume.VolumeSource
	if ptr.AllPtrFieldsNil(source) {
		source.EmptyDir = &corev1.EmptyDirVolumeSource{}
		return
	}
	if v := source.Secret; v != nil {
		rule.DefaultPointer(&v.DefaultMode, defaultFileMode)
	}
	if v := source.ConfigMap; v != nil {
		rule.DefaultPointer(&v.DefaultMode, defaultFileMode)
	}
	if v := source.DownwardAPI; v != nil {
		rule.DefaultPointer(&v.DefaultMode, defaultFileMode)
		defaultDownwardFiles(v.Items)
	}
	if v := source.Projected; v != nil {
		rule.DefaultPointer(&v.DefaultMode, defaultFileMode)
		defaultProjections(v.Sources)
	}
	if v := source.HostPath; v != nil {
		rule.DefaultPointer(&v.Type, corev1.HostPathUnset)
	}
	if v := source.Ephemeral; v != nil && v.VolumeClaimTemplate != nil {
		claim.Default(&v.VolumeClaimTemplate.Spec)
	}
	if v := source.Image; v != nil && v.PullPolicy == "" {
		v.PullPolicy = pullPolicy(v.Reference)
	}
	defaultNetworkVolume(source)
}

func defaultDownwardFiles(files []corev1.DownwardAPIVolumeFile) {
	for i := range files {
		defaultFieldRef(files[i].FieldRef)
	}
}

func defaultProjections(sources []corev1.VolumeProjection) {
	for i := range sources {
		if token := sources[i].ServiceAccountToken; token != nil {
			rule.DefaultPointer(&token.ExpirationSeconds, defaultTokenSeconds)
		}
		if downward := sources[i].DownwardAPI; downward != nil {
			defaultDownwardFiles(downward.Items)
		}
	}
}

// defaultNetworkVolume fills the in-tree network sources that clients still send.
func defaultNetworkVolume(source *corev1.VolumeSource) {
	if v := source.ISCSI; v != nil {
		rule.Default(&v.ISCSIInterface, "default")
	}
	if v := source.RBD; v != nil {
		rule.Default(&v.RBDPool, "rbd")
		rule.Default(&v.RadosUser, "admin")
		rule.Default(&v.Keyring, "/etc/ceph/keyring")
	}
	if v := source.ScaleIO; v != nil {
		rule.Default(&v.StorageMode, "ThinProvisioned")
		rule.Default(&v.FSType, "xfs")
	}
	if v := source.AzureDisk; v != nil {
		rule.DefaultPointer(&v.CachingMode, corev1.AzureDataDiskCachingReadWrite)
		rule.DefaultPointer(&v.Kind, corev1.AzureSharedBlobDisk)
		rule.DefaultPointer(&v.FSType, "ext4")
		rule.DefaultPointer(&v.ReadOnly, false)
	}
}
