package podspec

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
)

// accountSpecMax is the largest description of a group-managed service account, in KiB.
const accountSpecMax = 64

// validateServiceAccountSpec judges as which account of a Windows domain containers run.
func validateServiceAccountSpec(options *corev1.WindowsSecurityContextOptions, path *field.Path) field.ErrorList {
	if options == nil {
		return nil
	}
	var errs field.ErrorList
	if name := options.GMSACredentialSpecName; name != nil {
		errs = append(errs, rule.Subdomain(*name, path.Child("gmsaCredentialSpecName"))...)
	}
	switch spec, at := options.GMSACredentialSpec, path.Child("gmsaCredentialSpec"); {
	case spec == nil:
	case *spec == "":
		errs = append(errs, field.Invalid(at, *spec, "gmsaCredentialSpec cannot be an empty string"))
	case len(*spec) > accountSpecMax<<10:
		errs = append(errs, field.Invalid(at, *spec, fmt.Sprintf("gmsaCredentialSpec size must be under %d KiB", accountSpecMax)))
	}
	return errs
}

// validateHostProcess: if one container runs as a process of its Windows node then all do, in the node's network.
func validateHostProcess(spec *corev1.PodSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	var ofPod *bool
	if sc := spec.SecurityContext; sc != nil && sc.WindowsOptions != nil {
		ofPod = sc.WindowsOptions.HostProcess
	}
	all, hostProcesses := 0, 0
	visit := func(sc *corev1.SecurityContext, at *field.Path) {
		all++
		own := ofPod
		if sc != nil && sc.WindowsOptions != nil && sc.WindowsOptions.HostProcess != nil {
			own = sc.WindowsOptions.HostProcess
			if ofPod != nil && *own != *ofPod {
				errs = append(errs, field.Invalid(at.Child("securityContext", "windowsOptions", "hostProcess"), *own,
					fmt.Sprintf("pod hostProcess value must be identical if both are specified, was %v", *ofPod)))
			}
		}
		if ptr.Deref(own, false) {
			hostProcesses++
		}
	}
	for i := range spec.InitContainers {
		visit(spec.InitContainers[i].SecurityContext, path.Child("initContainers").Index(i))
	}
	for i := range spec.Containers {
		visit(spec.Containers[i].SecurityContext, path.Child("containers").Index(i))
	}
	for i := range spec.EphemeralContainers {
		visit(spec.EphemeralContainers[i].SecurityContext, path.Child("ephemeralContainers").Index(i))
	}
	if hostProcesses > 0 && hostProcesses < all {
		errs = append(
			errs,
			field.Invalid(path, "", "If pod contains any hostProcess containers then all containers must be HostProcess containers"),
		)
	}
	if hostProcesses > 0 && !spec.HostNetwork {
		errs = append(
			errs,
			field.Invalid(
				path.Child("hostNetwork"),
				spec.HostNetwork,
				"hostNetwork must be true if pod contains any hostProcess containers",
			),
		)
	}
	return errs
}
