package podspec

import (
	"regexp"

	corev1 "k8s.io/api/core/v1"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
)

// lunMax is the largest number of a logical unit.
const lunMax = 255

// Names of iSCSI nodes by their beginning (RFC 3720, section 3.2.6.3.1).
var iscsiNames = map[string]*regexp.Regexp{
	"iqn": regexp.MustCompile(`^iqn\.\d{4}-\d{2}\.([[:alnum:]-.]+)(:[^,;*&$|\s]+)$`),
	"eui": regexp.MustCompile(`^eui.[[:alnum:]]{16}$`),
	"naa": regexp.MustCompile(`^naa.[[:alnum:]]{32}$`),
}

func validateCSI(csi *corev1.CSIVolumeSource, path *field.Path) field.ErrorList {
	errs := rule.DriverName(csi.Driver, path.Child("driver"))
	if ref := csi.NodePublishSecretRef; ref != nil {
		if ref.Name == "" {
			return append(errs, field.Required(path.Child("nodePublishSecretRef", "name"), ""))
		}
		errs = append(errs, rule.Subdomain(ref.Name, path.Child("name"))...)
	}
	return errs
}

// ISCSI judges a disk behind iSCSI.
func ISCSI(iscsi *corev1.ISCSIVolumeSource, path *field.Path) field.ErrorList {
	errs := rule.Required(iscsi.TargetPortal, path.Child("targetPortal"))
	errs = append(errs, rule.Required(iscsi.IQN, path.Child("iqn"))...)
	if iscsi.IQN != "" {
		errs = append(errs, validateISCSIName(iscsi.IQN, path.Child("iqn"))...)
	}
	errs = append(errs, validateLUN(iscsi.Lun, path.Child("lun"))...)
	if (iscsi.DiscoveryCHAPAuth || iscsi.SessionCHAPAuth) && iscsi.SecretRef == nil {
		errs = append(errs, field.Required(path.Child("secretRef"), ""))
	}
	if iscsi.InitiatorName != nil {
		errs = append(errs, validateISCSIName(*iscsi.InitiatorName, path.Child("initiatorname"))...)
	}
	return errs
}

func validateISCSIName(name string, path *field.Path) field.ErrorList {
	pattern := iscsiNames[name[:min(len(name), 3)]]
	switch {
	case pattern == nil:
		return field.ErrorList{field.Invalid(path, name, "must be valid format starting with iqn, eui, or naa")}
	case !pattern.MatchString(name):
		return field.ErrorList{field.Invalid(path, name, "must be valid format")}
	}
	return nil
}

func validateLUN(lun int32, path *field.Path) field.ErrorList {
	if lun < 0 || lun > lunMax {
		return field.ErrorList{field.Invalid(path, lun, utilvalidation.InclusiveRangeError(0, lunMax))}
	}
	return nil
}

// FC judges a disk behind Fibre Channel.
func FC(fc *corev1.FCVolumeSource, path *field.Path) field.ErrorList {
	at := path.Child("targetWWNs")
	switch {
	case len(fc.TargetWWNs) == 0 && len(fc.WWIDs) == 0:
		return field.ErrorList{field.Required(at, "must specify either targetWWNs or wwids, but not both")}
	case len(fc.TargetWWNs) == 0:
		return nil
	}
	var errs field.ErrorList
	if len(fc.WWIDs) > 0 {
		errs = append(errs, field.Invalid(at, fc.TargetWWNs, "targetWWNs and wwids can not be specified simultaneously"))
	}
	if fc.Lun == nil {
		return append(errs, field.Required(path.Child("lun"), "lun is required if targetWWNs is specified"))
	}
	return append(errs, validateLUN(*fc.Lun, path.Child("lun"))...)
}
