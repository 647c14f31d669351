package volume

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/setpoint-io/setpoint/apiserver/kinds/podspec"
	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
)

// validateSource asks for one source, and judges it. Order and names are upstream's,
// also where a name is not that of the field.
func validateSource(spec *corev1.PersistentVolumeSpec, path *field.Path) field.ErrorList {
	s, at := &spec.PersistentVolumeSource, path.Child
	return podspec.OneSource([]podspec.Source{
		{Set: s.HostPath != nil, Name: "hostPath", Judge: func() field.ErrorList { return podspec.HostPath(s.HostPath, at("hostPath")) }},
		{Set: s.GCEPersistentDisk != nil, Name: "gcePersistentDisk", Judge: func() field.ErrorList { return podspec.GCEDisk(s.GCEPersistentDisk, at("persistentDisk")) }},
		{Set: s.AWSElasticBlockStore != nil, Name: "awsElasticBlockStore", Judge: func() field.ErrorList { return podspec.AWSDisk(s.AWSElasticBlockStore, at("awsElasticBlockStore")) }},
		{Set: s.Glusterfs != nil, Name: "glusterfs", Judge: func() field.ErrorList { return validateGlusterfs(s.Glusterfs, at("glusterfs")) }},
		{Set: s.Flocker != nil, Name: "flocker", Judge: func() field.ErrorList { return podspec.Flocker(s.Flocker, at("flocker")) }},
		{Set: s.NFS != nil, Name: "nfs", Judge: func() field.ErrorList { return podspec.NFS(s.NFS, at("nfs")) }},
		{Set: s.RBD != nil, Name: "rbd", Judge: func() field.ErrorList { return podspec.RBD(s.RBD.CephMonitors, s.RBD.RBDImage, at("rbd")) }},
		{Set: s.Quobyte != nil, Name: "quobyte", Judge: func() field.ErrorList { return podspec.Quobyte(s.Quobyte, at("quobyte")) }},
		{Set: s.CephFS != nil, Name: "cephFS", Judge: func() field.ErrorList { return podspec.CephFS(s.CephFS.Monitors, at("cephfs")) }},
		{Set: s.ISCSI != nil, Name: "iscsi", Judge: func() field.ErrorList { return validateISCSI(s.ISCSI, at("iscsi")) }},
		{Set: s.Cinder != nil, Name: "cinder", Judge: func() field.ErrorList {
			return append(rule.Required(s.Cinder.VolumeID, at("cinder", "volumeID")), requireReference(s.Cinder.SecretRef, at("cinder", "secretRef"))...)
		}},
		{Set: s.FC != nil, Name: "fc", Judge: func() field.ErrorList { return podspec.FC(s.FC, at("fc")) }},
		{Set: s.FlexVolume != nil, Name: "flexVolume", Beside: true, Judge: func() field.ErrorList {
			return podspec.Flex(s.FlexVolume.Driver, s.FlexVolume.Options, at("flexVolume"))
		}},
		{Set: s.AzureFile != nil, Name: "azureFile", Judge: func() field.ErrorList { return validateAzureFile(s.AzureFile, at("azureFile")) }},
		{Set: s.VsphereVolume != nil, Name: "vsphereVolume", Judge: func() field.ErrorList { return podspec.Vsphere(s.VsphereVolume, at("vsphereVolume")) }},
		{Set: s.PhotonPersistentDisk != nil, Name: "photonPersistentDisk", Judge: func() field.ErrorList { return podspec.Photon(s.PhotonPersistentDisk, at("photonPersistentDisk")) }},
		{Set: s.PortworxVolume != nil, Name: "portworxVolume", Judge: func() field.ErrorList { return podspec.Portworx(s.PortworxVolume, at("portworxVolume")) }},
		{Set: s.AzureDisk != nil, Name: "azureDisk", Judge: func() field.ErrorList { return podspec.AzureDisk(s.AzureDisk, at("azureDisk")) }},
		{Set: s.ScaleIO != nil, Name: "scaleIO", Judge: func() field.ErrorList {
			return podspec.ScaleIO(s.ScaleIO.Gateway, s.ScaleIO.System, s.ScaleIO.VolumeName, at("scaleIO"))
		}},
		{Set: s.Local != nil, Name: "local", Judge: func() field.ErrorList { return validateLocal(spec, path) }},
		{Set: s.StorageOS != nil, Name: "storageos", Judge: func() field.ErrorList { return validateStorageOS(s.StorageOS, at("storageos")) }},
		{Set: s.CSI != nil, Name: "csi", Judge: func() field.ErrorList { return validateCSI(s.CSI, at("csi")) }},
	}, path)
}

func validateGlusterfs(source *corev1.GlusterfsPersistentVolumeSource, path *field.Path) field.ErrorList {
	errs, at := podspec.Glusterfs(source.EndpointsName, source.Path, path), path.Child("endpointsNamespace")
	switch namespace := source.EndpointsNamespace; {
	case namespace == nil:
		return errs
	case *namespace == "":
		return append(errs, field.Invalid(at, "", "if the endpointnamespace is set, it must be a valid namespace name"))
	default:
		return append(errs, rule.Label(*namespace, at)...)
	}
}

func validateISCSI(s *corev1.ISCSIPersistentVolumeSource, path *field.Path) field.ErrorList {
	disk := &corev1.ISCSIVolumeSource{
		TargetPortal: s.TargetPortal, IQN: s.IQN, Lun: s.Lun, InitiatorName: s.InitiatorName,
		DiscoveryCHAPAuth: s.DiscoveryCHAPAuth, SessionCHAPAuth: s.SessionCHAPAuth,
	}
	if s.SecretRef == nil {
		return podspec.ISCSI(disk, path)
	}
	disk.SecretRef = &corev1.LocalObjectReference{Name: s.SecretRef.Name}
	return append(podspec.ISCSI(disk, path), rule.Required(s.SecretRef.Name, path.Child("secretRef", "name"))...)
}

func validateAzureFile(source *corev1.AzureFilePersistentVolumeSource, path *field.Path) field.ErrorList {
	errs := podspec.AzureFile(source.SecretName, source.ShareName, path)
	if source.SecretNamespace != nil {
		errs = append(errs, rule.Required(*source.SecretNamespace, path.Child("secretNamespace"))...)
	}
	return errs
}

func validateStorageOS(source *corev1.StorageOSPersistentVolumeSource, path *field.Path) field.ErrorList {
	errs := podspec.StorageOS(source.VolumeName, source.VolumeNamespace, path)
	if ref := source.SecretRef; ref != nil {
		errs = append(errs, requireReference(&corev1.SecretReference{Name: ref.Name, Namespace: ref.Namespace}, path.Child("secretRef"))...)
	}
	return errs
}

// requireReference asks of a reference that is there for both of its parts.
func requireReference(ref *corev1.SecretReference, path *field.Path) field.ErrorList {
	if ref == nil {
		return nil
	}
	return append(rule.Required(ref.Name, path.Child("name")), rule.Required(ref.Namespace, path.Child("namespace"))...)
}

// validateLocal: a disk of one node is of use on that node only.
func validateLocal(spec *corev1.PersistentVolumeSpec, path *field.Path) field.ErrorList {
	at := path.Child("local", "path")
	errs := rule.Required(spec.Local.Path, at)
	errs = append(errs, podspec.NoBacksteps(spec.Local.Path, at)...)
	if spec.NodeAffinity == nil {
		errs = append(errs, field.Required(path.Child("nodeAffinity"), "Local volume requires node affinity"))
	}
	return errs
}

func validateCSI(csi *corev1.CSIPersistentVolumeSource, path *field.Path) field.ErrorList {
	errs := validateCSIDriverName(csi.Driver, path.Child("driver"))
	errs = append(errs, rule.Required(csi.VolumeHandle, path.Child("volumeHandle"))...)
	for _, secret := range []struct {
		name string
		ref  *corev1.SecretReference
	}{
		{"controllerPublishSecretRef", csi.ControllerPublishSecretRef},
		{"controllerExpandSecretRef", csi.ControllerExpandSecretRef},
		{"nodePublishSecretRef", csi.NodePublishSecretRef},
		{"nodeExpandSecretRef", csi.NodeExpandSecretRef},
	} {
		if secret.ref != nil {
			errs = append(errs, validateSecretReference(secret.ref, path.Child(secret.name))...)
		}
	}
	return errs
}

func validateCSIDriverName(name string, path *field.Path) field.ErrorList {
	return append(rule.Required(name, path), rule.DriverName(name, path)...)
}

func validateSecretReference(ref *corev1.SecretReference, path *field.Path) field.ErrorList {
	errs := rule.Required(ref.Name, path.Child("name"))
	if ref.Name != "" {
		errs = append(errs, rule.Subdomain(ref.Name, path.Child("name"))...)
	}
	if ref.Namespace == "" {
		return append(errs, field.Required(path.Child("namespace"), ""))
	}
	return append(errs, rule.Label(ref.Namespace, path.Child("namespace"))...)
}
