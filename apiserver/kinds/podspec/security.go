package podspec

import (
	"fmt"
	"regexp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
)

const (
	sysctlNameMax    = 253
	sysctlSegment    = "[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
	sysctlName       = "(" + sysctlSegment + "[\\./])*" + sysctlSegment
	nameserversMax   = 3
	searchesMax      = 32
	searchesBytesMax = 2048
)

var sysctlPattern = regexp.MustCompile("^" + sysctlName + "$")

// validatePodSecurity judges what a pod may see of its node, and as whom it runs.
func validatePodSecurity(spec *corev1.PodSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if spec.ShareProcessNamespace != nil && *spec.ShareProcessNamespace && spec.HostPID {
		errs = append(errs, field.Invalid(path.Child("shareProcessNamespace"), *spec.ShareProcessNamespace,
			"ShareProcessNamespace and HostPID cannot both be enabled"))
	}
	if spec.HostUsers != nil && !*spec.HostUsers {
		errs = append(errs, validateOwnUsers(spec, path)...)
	}
	errs = append(errs, validateHostProcess(spec, path)...)
	sc, at := spec.SecurityContext, path.Child("securityContext")
	if sc == nil {
		return errs
	}
	errs = append(errs, validateIDs(sc.RunAsUser, sc.RunAsGroup, at)...)
	if sc.FSGroup != nil {
		errs = append(errs, rule.Invalid(*sc.FSGroup, utilvalidation.IsValidGroupID(*sc.FSGroup), at.Child("fsGroup"))...)
	}
	for i, group := range sc.SupplementalGroups {
		errs = append(errs, rule.Invalid(group, utilvalidation.IsValidGroupID(group), at.Child("supplementalGroups").Index(i))...)
	}
	if p := sc.FSGroupChangePolicy; p != nil {
		errs = append(
			errs,
			rule.OneOf(
				*p,
				[]corev1.PodFSGroupChangePolicy{corev1.FSGroupChangeAlways, corev1.FSGroupChangeOnRootMismatch},
				at.Child("fsGroupChangePolicy"),
			)...)
	}
	groups := []corev1.SupplementalGroupsPolicy{corev1.SupplementalGroupsPolicyMerge, corev1.SupplementalGroupsPolicyStrict}
	errs = append(errs, rule.OptionalOneOf(sc.SupplementalGroupsPolicy, groups, at.Child("supplementalGroupsPolicy"))...)
	labels := []corev1.PodSELinuxChangePolicy{corev1.SELinuxChangePolicyMountOption, corev1.SELinuxChangePolicyRecursive}
	errs = append(errs, rule.OptionalOneOf(sc.SELinuxChangePolicy, labels, at.Child("seLinuxChangePolicy"))...)
	errs = append(errs, validateSysctls(sc.Sysctls, at.Child("sysctls"))...)
	errs = append(errs, validateSeccomp(sc.SeccompProfile, at.Child("seccompProfile"))...)
	errs = append(errs, validateServiceAccountSpec(sc.WindowsOptions, at.Child("windowsOptions"))...)
	return append(errs, validateAppArmor(sc.AppArmorProfile, at.Child("appArmorProfile"))...)
}

// validateOwnUsers: a pod with users of its own cannot share the node's namespaces.
func validateOwnUsers(spec *corev1.PodSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, shared := range []struct {
		set  bool
		name string
	}{{spec.HostNetwork, "hostNetwork"}, {spec.HostPID, "HostPID"}, {spec.HostIPC, "HostIPC"}} {
		if shared.set {
			errs = append(errs, field.Forbidden(path.Child(shared.name), "when `hostUsers` is false"))
		}
	}
	return errs
}

func validateIDs(user, group *int64, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if user != nil {
		errs = append(errs, rule.Invalid(*user, utilvalidation.IsValidUserID(*user), path.Child("runAsUser"))...)
	}
	if group != nil {
		errs = append(errs, rule.Invalid(*group, utilvalidation.IsValidGroupID(*group), path.Child("runAsGroup"))...)
	}
	return errs
}

func validateSysctls(sysctls []corev1.Sysctl, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := sets.New[string]()
	for i, sysctl := range sysctls {
		at := path.Index(i).Child("name")
		switch {
		case sysctl.Name == "":
			errs = append(errs, field.Required(at, ""))
		case len(sysctl.Name) > sysctlNameMax || !sysctlPattern.MatchString(sysctl.Name):
			errs = append(
				errs,
				field.Invalid(
					at,
					sysctl.Name,
					fmt.Sprintf("must have at most %d characters and match regex %s", sysctlNameMax, sysctlPattern),
				),
			)
		case seen.Has(sysctl.Name):
			errs = append(errs, field.Duplicate(at, sysctl.Name))
		}
		seen.Insert(sysctl.Name)
	}
	return errs
}

func validateSeccomp(profile *corev1.SeccompProfile, at *field.Path) field.ErrorList {
	if profile == nil {
		return nil
	}
	types := []corev1.SeccompProfileType{
		corev1.SeccompProfileTypeLocalhost,
		corev1.SeccompProfileTypeRuntimeDefault,
		corev1.SeccompProfileTypeUnconfined,
	}
	var errs field.ErrorList
	if profile.Type == "" {
		errs = append(errs, field.Required(at.Child("type"), "type is required when seccompProfile is set"))
	} else {
		errs = append(errs, rule.OneOf(profile.Type, types, at.Child("type"))...)
	}
	switch file, local := at.Child("localhostProfile"), profile.Type == corev1.SeccompProfileTypeLocalhost; {
	case local && profile.LocalhostProfile == nil:
		errs = append(errs, field.Required(file, "must be set when seccomp type is Localhost"))
	case local:
		errs = append(errs, validateDescendingPath(*profile.LocalhostProfile, file)...)
	case profile.LocalhostProfile != nil:
		errs = append(errs, field.Invalid(file, profile, "can only be set when seccomp type is Localhost"))
	}
	return errs
}

func validateAppArmor(profile *corev1.AppArmorProfile, at *field.Path) field.ErrorList {
	if profile == nil {
		return nil
	}
	types := []corev1.AppArmorProfileType{
		corev1.AppArmorProfileTypeLocalhost,
		corev1.AppArmorProfileTypeRuntimeDefault,
		corev1.AppArmorProfileTypeUnconfined,
	}
	if errs := rule.RequiredOneOf(profile.Type, types, at.Child("type")); len(errs) > 0 {
		return errs
	}
	switch name, local := at.Child("localhostProfile"), profile.Type == corev1.AppArmorProfileTypeLocalhost; {
	case local && ptr.Deref(profile.LocalhostProfile, "") == "":
		return field.ErrorList{field.Required(name, "must be set when type is Localhost")}
	case !local && profile.LocalhostProfile != nil:
		return field.ErrorList{field.Invalid(name, *profile.LocalhostProfile, "can only be set when type is Localhost")}
	}
	return nil
}

func validateContainerSecurity(sc *corev1.SecurityContext, spec *corev1.PodSpec, at *field.Path) field.ErrorList {
	if sc == nil {
		return nil
	}
	errs := validateIDs(sc.RunAsUser, sc.RunAsGroup, at)
	if proc := sc.ProcMount; proc != nil {
		errs = append(
			errs,
			rule.OneOf(*proc, []corev1.ProcMountType{corev1.DefaultProcMount, corev1.UnmaskedProcMount}, at.Child("procMount"))...)
		if *proc == corev1.UnmaskedProcMount && ptr.Deref(spec.HostUsers, true) {
			errs = append(errs, field.Invalid(at.Child("procMount"), *proc, "`hostUsers` must be false to use `Unmasked`"))
		}
	}
	errs = append(errs, validateSeccomp(sc.SeccompProfile, at.Child("seccompProfile"))...)
	errs = append(errs, validateAppArmor(sc.AppArmorProfile, at.Child("appArmorProfile"))...)
	errs = append(errs, validateServiceAccountSpec(sc.WindowsOptions, at.Child("windowsOptions"))...)
	if sc.AllowPrivilegeEscalation != nil && !*sc.AllowPrivilegeEscalation {
		if rule.IsTrue(sc.Privileged) {
			errs = append(errs, field.Invalid(at, sc, "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"))
		}
		if sc.Capabilities != nil && slices.Contains(sc.Capabilities.Add, corev1.Capability("CAP_SYS_ADMIN")) {
			errs = append(
				errs,
				field.Invalid(at, sc, "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"),
			)
		}
	}
	return errs
}

// validateDNS judges how a pod resolves names.
func validateDNS(spec *corev1.PodSpec, at *field.Path) field.ErrorList {
	policies := []corev1.DNSPolicy{corev1.DNSClusterFirstWithHostNet, corev1.DNSClusterFirst, corev1.DNSDefault, corev1.DNSNone}
	errs := rule.RequiredOneOf(spec.DNSPolicy, policies, at.Child("dnsPolicy"))
	config, path := spec.DNSConfig, at.Child("dnsConfig")
	if spec.DNSPolicy == corev1.DNSNone {
		if config == nil {
			return append(errs, field.Required(path, fmt.Sprintf("must provide `dnsConfig` when `dnsPolicy` is %s", corev1.DNSNone)))
		}
		if len(config.Nameservers) == 0 {
			return append(
				errs,
				field.Required(
					path.Child("nameservers"),
					fmt.Sprintf("must provide at least one DNS nameserver when `dnsPolicy` is %s", corev1.DNSNone),
				),
			)
		}
	}
	if config == nil {
		return errs
	}
	return append(errs, validateDNSConfig(config, path)...)
}

func validateDNSConfig(config *corev1.PodDNSConfig, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(config.Nameservers) > nameserversMax {
		errs = append(
			errs,
			field.Invalid(
				at.Child("nameservers"),
				config.Nameservers,
				fmt.Sprintf("must not have more than %v nameservers", nameserversMax),
			),
		)
	}
	for i, server := range config.Nameservers {
		errs = append(errs, rule.LegacyIP(server, at.Child("nameservers").Index(i))...)
	}
	if len(config.Searches) > searchesMax {
		errs = append(
			errs,
			field.Invalid(at.Child("searches"), config.Searches, fmt.Sprintf("must not have more than %v search paths", searchesMax)),
		)
	}
	bytes := 0
	for i, search := range config.Searches {
		bytes += len(search) + 1
		if search == "." {
			continue
		}
		errs = append(
			errs,
			rule.Invalid(search, utilvalidation.IsDNS1123SubdomainWithUnderscore(trimDot(search)), at.Child("searches").Index(i))...)
	}
	if bytes-1 > searchesBytesMax {
		errs = append(errs, field.Invalid(at.Child("searches"), config.Searches,
			fmt.Sprintf("must not have more than %v characters (including spaces) in the search list", searchesBytesMax)))
	}
	for i, option := range config.Options {
		errs = append(errs, rule.Required(option.Name, at.Child("options").Index(i))...)
	}
	return errs
}

func trimDot(name string) string {
	if n := len(name); n > 0 && name[n-1] == '.' {
		return name[:n-1]
	}
	return name
}
