package kinds

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
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
		setPointer(&v.DefaultMode, defaultFileMode)
	}
	if v := source.ConfigMap; v != nil {
		setPointer(&v.DefaultMode, defaultFileMode)
	}
	if v := source.DownwardAPI; v != nil {
		setPointer(&v.DefaultMode, defaultFileMode)
		defaultDownwardFiles(v.Items)
	}
	if v := source.Projected; v != nil {
		setPointer(&v.DefaultMode, defaultFileMode)
		defaultProjections(v.Sources)
	}
	if v := source.HostPath; v != nil {
		setPointer(&v.Type, corev1.HostPathUnset)
	}
	if v := source.Ephemeral; v != nil && v.VolumeClaimTemplate != nil {
		defaultClaimSpec(&v.VolumeClaimTemplate.Spec)
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
			setPointer(&token.ExpirationSeconds, defaultTokenSeconds)
		}
		if downward := sources[i].DownwardAPI; downward != nil {
			defaultDownwardFiles(downward.Items)
		}
	}
}

func defaultClaimSpec(spec *corev1.PersistentVolumeClaimSpec) {
	setPointer(&spec.VolumeMode, corev1.PersistentVolumeFilesystem)
	roundUp(spec.Resources.Limits)
	roundUp(spec.Resources.Requests)
}

// defaultNetworkVolume fills the in-tree network sources that clients still send.
func defaultNetworkVolume(source *corev1.VolumeSource) {
	if v := source.ISCSI; v != nil {
		setDefault(&v.ISCSIInterface, "default")
	}
	if v := source.RBD; v != nil {
		setDefault(&v.RBDPool, "rbd")
		setDefault(&v.RadosUser, "admin")
		setDefault(&v.Keyring, "/etc/ceph/keyring")
	}
	if v := source.ScaleIO; v != nil {
		setDefault(&v.StorageMode, "ThinProvisioned")
		setDefault(&v.FSType, "xfs")
	}
	if v := source.AzureDisk; v != nil {
		setPointer(&v.CachingMode, corev1.AzureDataDiskCachingReadWrite)
		setPointer(&v.Kind, corev1.AzureSharedBlobDisk)
		setPointer(&v.FSType, "ext4")
		setPointer(&v.ReadOnly, false)
	}
}
