package podspec

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
)

// Source is one of the places where the data of a volume can be.
type Source struct {
	Set bool
	// Name is the field that is refused beside another source.
	Name  string
	Judge func() field.ErrorList
	// Beside: it may stand beside another source, by a mistake of upstream's that stays.
	Beside bool
}

// OneSource asks for one source: it judges the first that is set, and refuses the others.
func OneSource(sources []Source, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	found := false
	for _, source := range sources {
		switch {
		case !source.Set:
			continue
		case found && !source.Beside:
			errs = append(errs, field.Forbidden(path.Child(source.Name), "may not specify more than 1 volume type"))
		default:
			errs = append(errs, source.Judge()...)
		}
		found = true
	}
	if !found {
		errs = append(errs, field.Required(path, "must specify a volume type"))
	}
	return errs
}

// validateVolumeSource judges what a pod mounts. Order and names are upstream's, also
// where a name is not that of the field.
func validateVolumeSource(s *corev1.VolumeSource, path *field.Path) field.ErrorList {
	at := path.Child
	return OneSource([]Source{
		{Set: s.EmptyDir != nil, Name: "emptyDir", Judge: func() field.ErrorList { return validateEmptyDir(s.EmptyDir, at("emptyDir")) }},
		{Set: s.HostPath != nil, Name: "hostPath", Judge: func() field.ErrorList { return HostPath(s.HostPath, at("hostPath")) }},
		{Set: s.GitRepo != nil, Name: "gitRepo", Judge: func() field.ErrorList { return validateGitRepo(s.GitRepo, at("gitRepo")) }},
		{Set: s.GCEPersistentDisk != nil, Name: "gcePersistentDisk", Judge: func() field.ErrorList { return GCEDisk(s.GCEPersistentDisk, at("persistentDisk")) }},
		{Set: s.AWSElasticBlockStore != nil, Name: "awsElasticBlockStore", Judge: func() field.ErrorList { return AWSDisk(s.AWSElasticBlockStore, at("awsElasticBlockStore")) }},
		{Set: s.Secret != nil, Name: "secret", Judge: func() field.ErrorList { return validateSecretVolume(s.Secret, at("secret")) }},
		{Set: s.NFS != nil, Name: "nfs", Judge: func() field.ErrorList { return NFS(s.NFS, at("nfs")) }},
		{Set: s.ISCSI != nil, Name: "iscsi", Judge: func() field.ErrorList { return ISCSI(s.ISCSI, at("iscsi")) }},
		{Set: s.Glusterfs != nil, Name: "glusterfs", Judge: func() field.ErrorList { return Glusterfs(s.Glusterfs.EndpointsName, s.Glusterfs.Path, at("glusterfs")) }},
		{Set: s.Flocker != nil, Name: "flocker", Judge: func() field.ErrorList { return Flocker(s.Flocker, at("flocker")) }},
		{Set: s.PersistentVolumeClaim != nil, Name: "persistentVolumeClaim", Judge: func() field.ErrorList {
			return rule.Required(s.PersistentVolumeClaim.ClaimName, at("persistentVolumeClaim", "claimName"))
		}},
		{Set: s.RBD != nil, Name: "rbd", Judge: func() field.ErrorList { return RBD(s.RBD.CephMonitors, s.RBD.RBDImage, at("rbd")) }},
		{Set: s.Cinder != nil, Name: "cinder", Judge: func() field.ErrorList { return validateCinder(s.Cinder, at("cinder")) }},
		{Set: s.CephFS != nil, Name: "cephFS", Judge: func() field.ErrorList { return CephFS(s.CephFS.Monitors, at("cephfs")) }},
		{Set: s.Quobyte != nil, Name: "quobyte", Judge: func() field.ErrorList { return Quobyte(s.Quobyte, at("quobyte")) }},
		{Set: s.DownwardAPI != nil, Name: "downwarAPI", Judge: func() field.ErrorList {
			return append(validateMode(s.DownwardAPI.DefaultMode, at("downwardAPI", "defaultMode")), validateDownwardFiles(s.DownwardAPI.Items, at("downwardAPI"))...)
		}},
		{Set: s.FC != nil, Name: "fc", Judge: func() field.ErrorList { return FC(s.FC, at("fc")) }},
		{Set: s.FlexVolume != nil, Name: "flexVolume", Judge: func() field.ErrorList { return Flex(s.FlexVolume.Driver, s.FlexVolume.Options, at("flexVolume")) }},
		{Set: s.ConfigMap != nil, Name: "configMap", Judge: func() field.ErrorList { return validateConfigMapVolume(s.ConfigMap, at("configMap")) }},
		{Set: s.AzureFile != nil, Name: "azureFile", Judge: func() field.ErrorList {
			return AzureFile(s.AzureFile.SecretName, s.AzureFile.ShareName, at("azureFile"))
		}},
		{Set: s.VsphereVolume != nil, Name: "vsphereVolume", Judge: func() field.ErrorList { return Vsphere(s.VsphereVolume, at("vsphereVolume")) }},
		{Set: s.PhotonPersistentDisk != nil, Name: "photonPersistentDisk", Judge: func() field.ErrorList { return Photon(s.PhotonPersistentDisk, at("photonPersistentDisk")) }},
		{Set: s.PortworxVolume != nil, Name: "portworxVolume", Judge: func() field.ErrorList { return Portworx(s.PortworxVolume, at("portworxVolume")) }},
		{Set: s.AzureDisk != nil, Name: "azureDisk", Judge: func() field.ErrorList { return AzureDisk(s.AzureDisk, at("azureDisk")) }},
		{Set: s.StorageOS != nil, Name: "storageos", Judge: func() field.ErrorList { return validateStorageOS(s.StorageOS, at("storageos")) }},
		{Set: s.Projected != nil, Name: "projected", Judge: func() field.ErrorList { return validateProjected(s.Projected, at("projected")) }},
		{Set: s.ScaleIO != nil, Name: "scaleIO", Judge: func() field.ErrorList {
			return ScaleIO(s.ScaleIO.Gateway, s.ScaleIO.System, s.ScaleIO.VolumeName, at("scaleIO"))
		}},
		{Set: s.CSI != nil, Name: "csi", Judge: func() field.ErrorList { return validateCSI(s.CSI, at("csi")) }},
		{Set: s.Ephemeral != nil, Name: "ephemeral", Judge: func() field.ErrorList {
			return validateEphemeralVolume(s.Ephemeral, at("ephemeral", "volumeClaimTemplate"))
		}},
		{Set: s.Image != nil, Name: "image", Judge: func() field.ErrorList {
			return append(rule.Required(s.Image.Reference, at("image", "reference")), rule.RequiredOneOf(s.Image.PullPolicy, pullPolicies, at("image", "pullPolicy"))...)
		}},
	}, path)
}

func validateEphemeralVolume(source *corev1.EphemeralVolumeSource, path *field.Path) field.ErrorList {
	if source.VolumeClaimTemplate == nil {
		return field.ErrorList{field.Required(path, "")}
	}
	return validateClaimTemplate(source.VolumeClaimTemplate, path)
}
