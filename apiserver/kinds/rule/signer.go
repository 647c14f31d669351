package rule

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	signerDomainMax = utilvalidation.DNS1123SubdomainMaxLength
	// signerMax leaves room for a namespace and a name in the path.
	signerMax = signerDomainMax + 1 + utilvalidation.DNS1123SubdomainMaxLength + 1 + utilvalidation.DNS1123LabelMaxLength
)

// Signer judges the name of who signs certificates: <domain>/<path>.
func Signer(name string, path *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	domain, rest, found := strings.Cut(name, "/")
	if !found || strings.Contains(rest, "/") {
		return field.ErrorList{field.Invalid(path, name, "must be a fully qualified domain and path of the form 'example.com/signer-name'")}
	}
	var errs field.ErrorList
	if len(domain) > signerDomainMax {
		errs = append(errs, field.TooLong(path, "", signerDomainMax))
	}
	errs = append(errs, validateSegment(domain, utilvalidation.IsDNS1123Label, path)...)
	if !strings.Contains(domain, ".") {
		errs = append(errs, field.Invalid(path, domain, "should be a domain with at least two segments separated by dots"))
	}
	errs = append(errs, validateSegment(rest, utilvalidation.IsDNS1123Subdomain, path)...)
	if len(name) > signerMax {
		errs = append(errs, field.TooLong(path, "", signerMax))
	}
	return errs
}

// validateSegment judges the labels between dots up to the first bad one: the others
// would tell nothing that differs.
func validateSegment(segment string, problems func(string) []string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for label := range strings.SplitSeq(segment, ".") {
		for _, msg := range problems(label) {
			errs = append(errs, field.Invalid(path, segment, fmt.Sprintf("validating label %q: %s", label, msg)))
		}
		if len(errs) > 0 {
			break
		}
	}
	return errs
}

// TrustBundleName says what is wrong with the name of a ClusterTrustBundle: it begins with the signer, so that rules on
// names can tell who writes which bundles.
func TrustBundleName(name, signer string) []string {
	if signer == "" {
		if strings.Contains(name, ":") {
			return []string{"ClusterTrustBundle without signer name must not have \":\" in its name"}
		}
		return validation.NameIsDNSSubdomain(name, false)
	}
	prefix := strings.ReplaceAll(signer, "/", ":") + ":"
	rest, found := strings.CutPrefix(name, prefix)
	if !found {
		return []string{fmt.Sprintf("ClusterTrustBundle for signerName %s must be named with prefix %s", signer, prefix)}
	}
	return validation.NameIsDNSSubdomain(rest, false)
}
