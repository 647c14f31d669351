package certificates

import (
	"fmt"
	"strings"

	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const (
	signerDomainMax = utilvalidation.DNS1123SubdomainMaxLength
	// signerMax leaves room for a namespace and a name in the path.
	signerMax = signerDomainMax + 1 + utilvalidation.DNS1123SubdomainMaxLength + 1 + utilvalidation.DNS1123LabelMaxLength
)

// validateSigner judges the name of who signs: <domain>/<path>.
func validateSigner(name string, path *field.Path) field.ErrorList {
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

// ofKubernetes: the signers of the project itself.
func ofKubernetes(signer string) bool {
	domain, _, _ := strings.Cut(signer, "/")
	return domain == "kubernetes.io" || strings.HasSuffix(domain, ".kubernetes.io")
}
