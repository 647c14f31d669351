package podspec

import (
	"maps"
	"net"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
)

// What drivers of storage that once were a part of Kubernetes ask for. Those that are
// exported stand in PersistentVolumes too.

const partitionMax = 255

func validatePartition(partition int32, path *field.Path) field.ErrorList {
	if partition < 0 || partition > partitionMax { // upstream's text leaves out the 0 that means none
		return field.ErrorList{field.Invalid(path, partition, utilvalidation.InclusiveRangeError(1, partitionMax))}
	}
	return nil
}

// requireFields asks for values by the names of their fields.
func requireFields(path *field.Path, namesAndValues ...string) field.ErrorList {
	var errs field.ErrorList
	for pair := range slices.Chunk(namesAndValues, 2) {
		errs = append(errs, rule.Required(pair[1], path.Child(pair[0]))...)
	}
	return errs
}

func requireList(list []string, path *field.Path) field.ErrorList {
	if len(list) == 0 {
		return field.ErrorList{field.Required(path, "")}
	}
	return nil
}

func validateGitRepo(repo *corev1.GitRepoVolumeSource, path *field.Path) field.ErrorList {
	return append(requireFields(path, "repository", repo.Repository), validateDescendingPath(repo.Directory, path.Child("directory"))...)
}

// GCEDisk judges a disk of Google's cloud.
func GCEDisk(disk *corev1.GCEPersistentDiskVolumeSource, path *field.Path) field.ErrorList {
	return append(requireFields(path, "pdName", disk.PDName), validatePartition(disk.Partition, path.Child("partition"))...)
}

// AWSDisk judges a disk of Amazon's cloud.
func AWSDisk(disk *corev1.AWSElasticBlockStoreVolumeSource, path *field.Path) field.ErrorList {
	return append(requireFields(path, "volumeID", disk.VolumeID), validatePartition(disk.Partition, path.Child("partition"))...)
}

// Glusterfs judges a volume of a Gluster cluster.
func Glusterfs(endpoints, volume string, path *field.Path) field.ErrorList {
	return requireFields(path, "endpoints", endpoints, "path", volume)
}

// Flocker judges a dataset, by its name or by its id.
func Flocker(flocker *corev1.FlockerVolumeSource, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	named, identified := flocker.DatasetName != "", flocker.DatasetUUID != ""
	switch {
	case !named && !identified:
		errs = append(errs, field.Required(path, "one of datasetName and datasetUUID is required"))
	case named && identified:
		errs = append(errs, field.Invalid(path, "resource", "datasetName and datasetUUID can not be specified simultaneously"))
	}
	if strings.Contains(flocker.DatasetName, "/") {
		errs = append(errs, field.Invalid(path.Child("datasetName"), flocker.DatasetName, "must not contain '/'"))
	}
	return errs
}

// RBD judges an image of a Ceph cluster.
func RBD(monitors []string, image string, path *field.Path) field.ErrorList {
	return append(requireList(monitors, path.Child("monitors")), requireFields(path, "image", image)...)
}

// CephFS judges a directory of a Ceph cluster.
func CephFS(monitors []string, path *field.Path) field.ErrorList {
	return requireList(monitors, path.Child("monitors"))
}

func validateCinder(disk *corev1.CinderVolumeSource, path *field.Path) field.ErrorList {
	errs := requireFields(path, "volumeID", disk.VolumeID)
	if disk.SecretRef != nil {
		errs = append(errs, rule.Required(disk.SecretRef.Name, path.Child("secretRef", "name"))...)
	}
	return errs
}

const quobyteTenantMax = 64

// Quobyte judges a volume and where its registries are.
func Quobyte(quobyte *corev1.QuobyteVolumeSource, path *field.Path) field.ErrorList {
	const pairs = "must be a host:port pair or multiple pairs separated by commas"
	var errs field.ErrorList
	switch at := path.Child("registry"); {
	case quobyte.Registry == "":
		errs = append(errs, field.Required(at, pairs))
	case len(quobyte.Tenant) > quobyteTenantMax:
		errs = append(errs, field.Required(path.Child("tenant"), "must be a UUID and may not exceed a length of 64 characters"))
	default:
		for pair := range strings.SplitSeq(quobyte.Registry, ",") {
			if _, _, err := net.SplitHostPort(pair); err != nil {
				errs = append(errs, field.Invalid(at, quobyte.Registry, pairs))
			}
		}
	}
	return append(errs, requireFields(path, "volume", quobyte.Volume)...)
}

// Flex judges a volume of a driver that nodes have as a program; its options must not
// be taken for those of Kubernetes.
func Flex(driver string, options map[string]string, path *field.Path) field.ErrorList {
	errs := requireFields(path, "driver", driver)
	for _, key := range slices.Sorted(maps.Keys(options)) {
		domain, _, _ := strings.Cut(key, "/")
		domain = "." + strings.ToLower(domain)
		if strings.HasSuffix(domain, ".kubernetes.io") || strings.HasSuffix(domain, ".k8s.io") {
			errs = append(errs, field.Invalid(path.Child("options").Key(key), key, "kubernetes.io and k8s.io namespaces are reserved"))
		}
	}
	return errs
}

// AzureFile judges a share of Microsoft's cloud.
func AzureFile(secret, share string, path *field.Path) field.ErrorList {
	return requireFields(path, "secretName", secret, "shareName", share)
}

// Vsphere judges a disk of VMware's.
func Vsphere(disk *corev1.VsphereVirtualDiskVolumeSource, path *field.Path) field.ErrorList {
	return requireFields(path, "volumePath", disk.VolumePath)
}

// Photon judges a disk of VMware's other system.
func Photon(disk *corev1.PhotonPersistentDiskVolumeSource, path *field.Path) field.ErrorList {
	return requireFields(path, "pdID", disk.PdID)
}

// Portworx judges a volume of a Portworx cluster.
func Portworx(volume *corev1.PortworxVolumeSource, path *field.Path) field.ErrorList {
	return requireFields(path, "volumeID", volume.VolumeID)
}

// ScaleIO judges a volume of a ScaleIO system.
func ScaleIO(gateway, system, volume string, path *field.Path) field.ErrorList {
	return requireFields(path, "gateway", gateway, "system", system, "volumeName", volume)
}

// Where the data of an Azure disk is, by its kind.
const (
	azureManaged = "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"
	azureBlob    = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"
)

// AzureDisk judges a disk of Microsoft's cloud.
func AzureDisk(disk *corev1.AzureDiskVolumeSource, path *field.Path) field.ErrorList {
	errs := requireFields(path, "diskName", disk.DiskName, "diskURI", disk.DataDiskURI)
	modes := []corev1.AzureDataDiskCachingMode{
		corev1.AzureDataDiskCachingNone,
		corev1.AzureDataDiskCachingReadOnly,
		corev1.AzureDataDiskCachingReadWrite,
	}
	errs = append(errs, rule.OptionalOneOf(disk.CachingMode, modes, path.Child("cachingMode"))...)
	kinds := []corev1.AzureDataDiskKind{corev1.AzureDedicatedBlobDisk, corev1.AzureManagedDisk, corev1.AzureSharedBlobDisk}
	errs = append(errs, rule.OptionalOneOf(disk.Kind, kinds, path.Child("kind"))...)
	if disk.Kind == nil {
		return errs
	}
	begin, form := "https://", azureBlob
	if *disk.Kind == corev1.AzureManagedDisk {
		begin, form = "/subscriptions/", azureManaged
	}
	if !strings.HasPrefix(disk.DataDiskURI, begin) {
		errs = append(errs, field.NotSupported(path.Child("diskURI"), disk.DataDiskURI, []string{form}))
	}
	return errs
}

func validateStorageOS(volume *corev1.StorageOSVolumeSource, path *field.Path) field.ErrorList {
	errs := StorageOS(volume.VolumeName, volume.VolumeNamespace, path)
	if volume.SecretRef != nil {
		errs = append(errs, rule.Required(volume.SecretRef.Name, path.Child("secretRef", "name"))...)
	}
	return errs
}

// StorageOS judges the names of a StorageOS volume.
func StorageOS(volume, namespace string, path *field.Path) field.ErrorList {
	errs := requireFields(path, "volumeName", volume)
	if volume != "" {
		errs = append(errs, rule.Label(volume, path.Child("volumeName"))...)
	}
	if namespace != "" {
		errs = append(errs, rule.Label(namespace, path.Child("volumeNamespace"))...)
	}
	return errs
}
