package certificates

import (
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/mail"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
)

// Limits of an issued certificate.
const (
	chainBytesMax   = 100 << 10
	lifetimeMin     = time.Hour
	notBeforeSkew   = 5 * time.Minute
	refreshDistance = 10 * time.Minute
)

var (
	statusPath = field.NewPath("status")
	chainPath  = statusPath.Child("certificateChain")
	// outcomes end a request; there is one at most, and nothing changes after it.
	outcomes = []string{
		certificatesv1.PodCertificateRequestConditionTypeIssued,
		certificatesv1.PodCertificateRequestConditionTypeDenied,
		certificatesv1.PodCertificateRequestConditionTypeFailed,
	}
)

func outcome(request *podRequest) string {
	for _, condition := range request.Status.Conditions {
		if condition.Status == metav1.ConditionTrue && slices.Contains(outcomes, condition.Type) {
			return condition.Type
		}
	}
	return ""
}

// validatePodRequestStatus: the status changes once, to one of the outcomes.
func validatePodRequestStatus(request, old *podRequest, now time.Time) field.ErrorList {
	if errs := validateOutcomes(request.Status.Conditions); len(errs) > 0 {
		return errs
	}
	status := &request.Status
	if outcome(old) != "" {
		return same(status, &old.Status, "immutable after PodCertificateRequest is issued, denied, or failed")
	}
	switch outcome(request) {
	case "":
		return same(status, &old.Status, `status is immutable unless transitioning to "Issued", "Denied", or "Failed"`)
	case certificatesv1.PodCertificateRequestConditionTypeIssued:
		return validateIssued(request, old, now)
	}
	empty := &certificatesv1.PodCertificateRequestStatus{Conditions: status.Conditions}
	return same(status, empty, "non-condition status fields must be empty when denying or failing the PodCertificateRequest")
}

func same(status, want *certificatesv1.PodCertificateRequestStatus, detail string) field.ErrorList {
	if equality.Semantic.DeepEqual(status, want) {
		return nil
	}
	return field.ErrorList{field.Invalid(statusPath, field.OmitValueType{}, detail)}
}

func validateOutcomes(conditions []metav1.Condition) field.ErrorList {
	var errs field.ErrorList
	known := 0
	for i, condition := range conditions {
		// The dot before the index is upstream's.
		at := statusPath.Child("conditions", fmt.Sprintf("[%d]", i))
		if !slices.Contains(outcomes, condition.Type) {
			errs = append(errs, field.NotSupported(at.Child("type"), condition.Type, outcomes))
			continue
		}
		if known++; known > 1 {
			errs = append(
				errs,
				field.Invalid(
					at.Child("type"),
					condition.Type,
					`There may be at most one condition with type "Issued", "Denied", or "Failed"`,
				),
			)
		}
		errs = append(errs, rule.OneOf(condition.Status, []metav1.ConditionStatus{metav1.ConditionTrue}, at.Child("status"))...)
	}
	return append(errs, metav1validation.ValidateConditions(conditions, statusPath.Child("conditions"))...)
}

// validateIssued: the certificate is for the key that was asked for, and the status
// says of it what it says itself.
func validateIssued(request, old *podRequest, now time.Time) field.ErrorList {
	leaf, rest, errs := parseLeaf(request.Status.CertificateChain)
	if leaf == nil || len(errs) > 0 {
		return errs
	}
	stub, err := x509.ParseCertificateRequest(old.Spec.StubPKCS10Request)
	if err != nil {
		return field.ErrorList{field.Invalid(stubPath, field.OmitValueType{}, "must be a valid PKCS#10 CSR")}
	}
	if equal, comparable := stub.PublicKey.(interface{ Equal(crypto.PublicKey) bool }); !comparable || !equal.Equal(leaf.PublicKey) {
		return invalidChain(request.Status.CertificateChain, "leaf certificate was not issued to the requested public key")
	}
	if errs := validateTimes(request, leaf, now); len(errs) > 0 {
		return errs
	}
	return validateIntermediates(request.Status.CertificateChain, rest)
}

func invalidChain(value any, detail string) field.ErrorList {
	return field.ErrorList{field.Invalid(chainPath, value, detail)}
}

func parseLeaf(chain string) (leaf *x509.Certificate, rest []byte, errs field.ErrorList) {
	if len(chain) > chainBytesMax {
		return nil, nil, field.ErrorList{field.TooLong(chainPath, chain, chainBytesMax)}
	}
	block, rest := pem.Decode([]byte(chain))
	switch {
	case block == nil:
		return nil, nil, invalidChain(chain, "issued certificate chain must contain at least one certificate")
	case block.Type != certificateBlock:
		return nil, nil, invalidChain(chain, "issued certificate chain must consist entirely of CERTIFICATE PEM blocks")
	}
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, nil, invalidChain(chain, "leaf certificate does not parse as valid X.509")
	}
	return leaf, rest, validateSubjects(leaf)
}

// validateSubjects refuses names that others could not read again.
func validateSubjects(leaf *x509.Certificate) field.ErrorList {
	var errs field.ErrorList
	for _, name := range leaf.DNSNames {
		if name == "" {
			errs = append(errs, field.Invalid(chainPath, name, "leaf certificate should not contain empty DNSName"))
		}
		if strings.Contains(name, "..") {
			errs = append(errs, field.Invalid(chainPath, name, "leaf certificate's DNSName should not contain '..'"))
		}
		if strings.HasPrefix(name, ".") || strings.HasSuffix(name, ".") {
			errs = append(errs, field.Invalid(chainPath, name, "leaf certificate's DNSName should not start or end with '.'"))
		}
	}
	for _, address := range leaf.EmailAddresses {
		if _, err := mail.ParseAddress(address); err != nil {
			errs = append(errs, field.Invalid(chainPath, address, "leaf certificate should not contain invalid EmailAddress"))
		}
	}
	return errs
}

func validateTimes(request *podRequest, leaf *x509.Certificate, now time.Time) field.ErrorList {
	status, before, after, refresh := &request.Status, statusPath.Child(
		"notBefore",
	), statusPath.Child(
		"notAfter",
	), statusPath.Child(
		"beginRefreshAt",
	)
	var errs field.ErrorList
	if status.NotBefore == nil {
		errs = append(errs, field.Required(before, "must be present and consistent with the issued certificate"))
	}
	if status.NotAfter == nil {
		errs = append(errs, field.Required(after, "must be present and consistent with the issued certificate"))
	}
	if status.BeginRefreshAt == nil {
		errs = append(errs, field.Required(refresh, "must be present and in the range [notbefore+10min, notafter-10min]"))
	}
	if len(errs) > 0 {
		return errs
	}
	lifetime := leaf.NotAfter.Sub(leaf.NotBefore)
	limit := *request.Spec.MaxExpirationSeconds
	switch {
	case !status.NotBefore.Time.Equal(leaf.NotBefore):
		return field.ErrorList{
			field.Invalid(before, status.NotBefore.Time, "must be set to the NotBefore time encoded in the leaf certificate"),
		}
	case status.NotBefore.Sub(now).Abs() >= notBeforeSkew:
		return field.ErrorList{
			field.Invalid(before, status.NotBefore.Time, "must be set to within 5 minutes of kube-apiserver's current time"),
		}
	case !status.NotAfter.Time.Equal(leaf.NotAfter):
		return field.ErrorList{
			field.Invalid(after, status.NotAfter.Time, "must be set to the NotAfter time encoded in the leaf certificate"),
		}
	case lifetime < lifetimeMin:
		return invalidChain(lifetime, "leaf certificate lifetime must be >= 1 hour")
	case lifetime > time.Duration(limit)*time.Second:
		return invalidChain(lifetime, fmt.Sprintf("leaf certificate lifetime must be <= spec.maxExpirationSeconds (%v)", limit))
	case status.BeginRefreshAt.Time.Before(leaf.NotBefore.Add(refreshDistance)):
		return field.ErrorList{field.Invalid(refresh, status.BeginRefreshAt.Time, "must be at least 10 minutes after status.notBefore")}
	case status.BeginRefreshAt.Time.After(leaf.NotAfter.Add(-refreshDistance)):
		return field.ErrorList{field.Invalid(refresh, status.BeginRefreshAt.Time, "must be at least 10 minutes before status.notAfter")}
	}
	return nil
}

// validateIntermediates looks whether the rest are certificates; a chain without its
// root cannot be verified here.
func validateIntermediates(chain string, rest []byte) field.ErrorList {
	for block, rest := pem.Decode(rest); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != certificateBlock {
			return invalidChain(chain, "issued certificate chain must consist entirely of CERTFICATE PEM blocks")
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return invalidChain(chain, "intermediate certificate does not parse as valid X.509")
		}
	}
	return nil
}
