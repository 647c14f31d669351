package podspec

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
)

// validateTrustBundle judges a projection of ClusterTrustBundles: of one by its name, or of all of a signer.
func validateTrustBundle(bundle *corev1.ClusterTrustBundleProjection, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch {
	case bundle.Name != nil && bundle.SignerName != nil:
		errs = append(errs, field.Invalid(path, bundle, "only one of name and signerName may be used"))
	case bundle.Name != nil:
		errs = append(errs, validateBundleByName(bundle, path)...)
	case bundle.SignerName != nil:
		errs = append(errs, validateBundlesOfSigner(bundle, path)...)
	default:
		errs = append(errs, field.Required(path, "either name or signerName must be specified"))
	}
	errs = append(errs, rule.Required(bundle.Path, path.Child("path"))...)
	return append(errs, validateLocalPath(bundle.Path, path.Child("path"))...)
}

func validateBundleByName(bundle *corev1.ClusterTrustBundleProjection, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	name, at := *bundle.Name, path.Child("name")
	if name == "" {
		errs = append(errs, field.Required(at, "must be a valid object name"))
	}
	for _, problem := range rule.TrustBundleName(name, signerIn(name)) {
		errs = append(errs, field.Invalid(at, name, fmt.Sprintf("not a valid clustertrustbundlename: %v", problem)))
	}
	if bundle.LabelSelector != nil {
		errs = append(
			errs,
			field.Invalid(path.Child("labelSelector"), bundle.LabelSelector, "labelSelector must be unset if name is specified"),
		)
	}
	return errs
}

// signerIn is the signer that a bundle's name begins with, example.com/ca in example.com:ca:v1; empty if there is none.
func signerIn(name string) string {
	parts := strings.Split(name, ":")
	if len(parts) != 3 {
		return ""
	}
	return parts[0] + "/" + parts[1]
}

func validateBundlesOfSigner(bundle *corev1.ClusterTrustBundleProjection, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if *bundle.SignerName == "" {
		errs = append(errs, field.Required(path.Child("signerName"), "must be a valid signer name"))
	}
	errs = append(errs, rule.Signer(*bundle.SignerName, path.Child("signerName"))...)
	return append(
		errs,
		metav1validation.ValidateLabelSelector(
			bundle.LabelSelector,
			metav1validation.LabelSelectorValidationOptions{},
			path.Child("labelSelector"),
		)...)
}

// validateLocalPath: a file below the volume's directory, whose name does not hide it among those the agent keeps there.
func validateLocalPath(file string, path *field.Path) field.ErrorList {
	errs := validateDescendingPath(file, path)
	if strings.HasPrefix(file, "..") && !strings.HasPrefix(file, "../") {
		errs = append(errs, field.Invalid(path, file, "must not start with '..'"))
	}
	return errs
}
