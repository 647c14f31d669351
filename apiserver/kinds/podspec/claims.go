package podspec

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
)

// validateResourceClaims judges which devices a pod claims.
func validateResourceClaims(claims []corev1.PodResourceClaim, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	names := sets.New[string]()
	for i := range claims {
		claim, at := &claims[i], path.Index(i)
		switch {
		case claim.Name == "":
			errs = append(errs, field.Required(at.Child("name"), ""))
		case names.Has(claim.Name):
			errs = append(errs, field.Duplicate(at.Child("name"), claim.Name))
		default:
			errs = append(errs, rule.Label(claim.Name, at.Child("name"))...)
			names.Insert(claim.Name)
		}
		switch named, templated := claim.ResourceClaimName != nil, claim.ResourceClaimTemplateName != nil; {
		case named && templated:
			errs = append(
				errs,
				field.Invalid(at, *claim, "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"),
			)
		case !named && !templated:
			errs = append(errs, field.Invalid(at, *claim, "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"))
		}
		if claim.ResourceClaimName != nil {
			errs = append(errs, rule.Subdomain(*claim.ResourceClaimName, at.Child("resourceClaimName"))...)
		}
		if claim.ResourceClaimTemplateName != nil {
			errs = append(errs, rule.Subdomain(*claim.ResourceClaimTemplateName, at.Child("resourceClaimTemplateName"))...)
		}
	}
	return errs
}

// validateClaimed: a container uses claims of its pod, each as a whole or by requests.
func validateClaimed(claimed []corev1.ResourceClaim, claims []corev1.PodResourceClaim, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	known := sets.New[string]()
	for i := range claims {
		known.Insert(claims[i].Name)
	}
	whole, parts := sets.New[string](), sets.New[string]()
	for i, claim := range claimed {
		at, key := path.Index(i), claim.Name+"/"+claim.Request
		if claim.Name == "" {
			errs = append(errs, field.Required(at, ""))
			continue
		}
		if claim.Request != "" {
			errs = append(errs, rule.Label(claim.Request, at.Child("request"))...)
		}
		switch {
		case whole.Has(claim.Name), claim.Request == "" && hasPart(parts, claim.Name):
			errs = append(errs, field.Duplicate(at, claim.Name))
		case parts.Has(key):
			errs = append(errs, field.Duplicate(at, key))
		case claim.Request == "":
			whole.Insert(claim.Name)
		default:
			parts.Insert(key)
		}
		if !known.Has(claim.Name) {
			errs = append(errs, unknownClaim(claim.Name, known, at))
		}
	}
	return errs
}

func hasPart(parts sets.Set[string], name string) bool {
	for part := range parts {
		if strings.HasPrefix(part, name+"/") {
			return true
		}
	}
	return false
}

func unknownClaim(name string, known sets.Set[string], path *field.Path) *field.Error {
	err := field.NotFound(path, name)
	err.Detail = "must be one of the names in pod.spec.resourceClaims which is empty"
	if known.Len() > 0 {
		err.Detail = "must be one of the names in pod.spec.resourceClaims: " + strings.Join(sets.List(known), ", ")
	}
	return err
}
