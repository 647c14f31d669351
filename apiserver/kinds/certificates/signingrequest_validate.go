package certificates

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
	"github.com/setpoint-io/setpoint/apiserver/resource"
)

const (
	// legacySigner is that of requests before there were signers.
	legacySigner         = "kubernetes.io/legacy-unknown"
	expirationSecondsMin = 600
)

var (
	conditionsPath  = field.NewPath("status", "conditions")
	certificatePath = field.NewPath("status", "certificate")
	// usages in the order of messages.
	usages = []certificatesv1.KeyUsage{
		certificatesv1.UsageAny, certificatesv1.UsageCertSign, certificatesv1.UsageClientAuth, certificatesv1.UsageCodeSigning,
		certificatesv1.UsageContentCommitment, certificatesv1.UsageCRLSign, certificatesv1.UsageDataEncipherment,
		certificatesv1.UsageDecipherOnly, certificatesv1.UsageDigitalSignature, certificatesv1.UsageEmailProtection,
		certificatesv1.UsageEncipherOnly, certificatesv1.UsageIPsecEndSystem, certificatesv1.UsageIPsecTunnel, certificatesv1.UsageIPsecUser,
		certificatesv1.UsageKeyAgreement, certificatesv1.UsageKeyEncipherment, certificatesv1.UsageMicrosoftSGC, certificatesv1.UsageNetscapeSGC,
		certificatesv1.UsageOCSPSigning, certificatesv1.UsageSMIME, certificatesv1.UsageServerAuth,
		certificatesv1.UsageSigning, certificatesv1.UsageTimestamping,
	}
	statuses = []corev1.ConditionStatus{corev1.ConditionFalse, corev1.ConditionTrue, corev1.ConditionUnknown}
	// verdicts cannot be taken back.
	verdicts = []certificatesv1.RequestConditionType{
		certificatesv1.CertificateApproved,
		certificatesv1.CertificateDenied,
		certificatesv1.CertificateFailed,
	}
	approvals = verdicts[:2]
)

// powers are what a subresource may do that others may not.
type powers struct{ approve, sign bool }

// past is what an update may keep because the stored request has it.
type past struct{ signer, usages, usagesTwice, typeless, typesTwice, bothApprovals, certificate bool }

func pastOf(request, old *signingRequest) past {
	kinds := map[certificatesv1.RequestConditionType]int{}
	var p past
	for _, condition := range old.Status.Conditions {
		kinds[condition.Type]++
		p.typesTwice = p.typesTwice || kinds[condition.Type] > 1
	}
	p.typeless = kinds[""] > 0
	p.bothApprovals = kinds[certificatesv1.CertificateApproved] > 0 && kinds[certificatesv1.CertificateDenied] > 0
	p.signer = old.Spec.SignerName == legacySigner
	for i, usage := range old.Spec.Usages {
		p.usages = p.usages || !slices.Contains(usages, usage)
		p.usagesTwice = p.usagesTwice || slices.Contains(old.Spec.Usages[:i], usage)
	}
	p.certificate = bytes.Equal(request.Status.Certificate, old.Status.Certificate) || certificateProblem(old.Status.Certificate) != nil
	return p
}

func validateNewRequest(request *signingRequest) field.ErrorList {
	return validateRequest(request, past{})
}

func validateRequest(request *signingRequest, may past) field.ErrorList {
	var errs field.ErrorList
	spec, path := &request.Spec, field.NewPath("spec")
	if err := requestProblem(spec.Request); err != nil {
		errs = append(errs, field.Invalid(path.Child("request"), spec.Request, err.Error()))
	}
	errs = append(errs, validateUsages(spec.Usages, may, path.Child("usages"))...)
	if spec.SignerName == legacySigner && !may.signer {
		errs = append(
			errs,
			field.Invalid(path.Child("signerName"), spec.SignerName, "the legacy signerName is not allowed via this API version"),
		)
	} else {
		errs = append(errs, rule.Signer(spec.SignerName, path.Child("signerName"))...)
	}
	if seconds := spec.ExpirationSeconds; seconds != nil && *seconds < expirationSecondsMin {
		errs = append(
			errs,
			field.Invalid(path.Child("expirationSeconds"), *seconds, "may not specify a duration less than 600 seconds (10 minutes)"),
		)
	}
	errs = append(errs, validateConditions(request.Status.Conditions, may)...)
	if err := certificateProblem(request.Status.Certificate); err != nil && !may.certificate {
		errs = append(errs, field.Invalid(certificatePath, "<certificate data>", err.Error()))
	}
	return errs
}

// requestProblem says what is wrong with a PKCS#10 request; its own key must have signed it.
func requestProblem(text []byte) error {
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "CERTIFICATE REQUEST" {
		return errors.New("PEM block type must be CERTIFICATE REQUEST")
	}
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return err
	}
	return request.CheckSignature()
}

func validateUsages(list []certificatesv1.KeyUsage, may past, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(list) == 0 {
		errs = append(errs, field.Required(path, ""))
	}
	for i, usage := range list {
		if !may.usages {
			errs = append(errs, rule.OneOf(usage, usages, path.Index(i))...)
		}
		if !may.usagesTwice && slices.Contains(list[:i], usage) {
			errs = append(errs, field.Duplicate(path.Index(i), usage))
		}
	}
	return errs
}

func validateConditions(conditions []certificatesv1.CertificateSigningRequestCondition, may past) field.ErrorList {
	var errs field.ErrorList
	seen := map[certificatesv1.RequestConditionType]bool{}
	for i, condition := range conditions {
		at := conditionsPath.Index(i)
		if condition.Type == "" && !may.typeless {
			errs = append(errs, field.Required(at.Child("type"), ""))
		}
		allowed := statuses
		if slices.Contains(verdicts, condition.Type) {
			allowed = statuses[1:2] // true
		}
		errs = append(errs, rule.RequiredOneOf(condition.Status, allowed, at.Child("status"))...)
		if seen[condition.Type] && !may.typesTwice {
			errs = append(errs, field.Duplicate(at.Child("type"), condition.Type))
		}
		seen[condition.Type] = true
	}
	if seen[certificatesv1.CertificateApproved] && seen[certificatesv1.CertificateDenied] && !may.bothApprovals {
		const approved, denied = `conditions[{"type": "Approved"}]`, `conditions[{"type": "Denied"}]`
		errs = append(
			errs,
			field.Invalid(conditionsPath, "{"+approved+", "+denied+"}", "must specify at most one of: `"+approved+"`, `"+denied+"`"),
		)
	}
	return errs
}

func certificateProblem(text []byte) error {
	if len(text) == 0 {
		return nil
	}
	blocks := 0
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != certificateBlock {
			return fmt.Errorf("only CERTIFICATE PEM blocks are allowed, found %q", block.Type)
		}
		if len(block.Headers) > 0 {
			return errors.New("no PEM block headers are permitted")
		}
		certificates, err := x509.ParseCertificates(block.Bytes)
		if err != nil {
			return err
		}
		if len(certificates) == 0 {
			return errors.New("found CERTIFICATE PEM block containing 0 certificates")
		}
		blocks++
	}
	if blocks == 0 {
		return errors.New("must contain at least one CERTIFICATE PEM block")
	}
	return nil
}

func validateRequestUpdate(request, old *signingRequest, has powers) field.ErrorList {
	errs := validateRequest(request, pastOf(request, old))
	for _, kind := range verdicts {
		was, is := conditionsOf(old, kind), conditionsOf(request, kind)
		switch guarded := !has.approve && slices.Contains(approvals, kind); {
		case len(is) < len(was):
			errs = append(errs, field.Forbidden(conditionsPath, fmt.Sprintf("updates may not remove a condition of type %q", kind)))
		case !guarded:
		case len(is) > len(was):
			errs = append(errs, field.Forbidden(conditionsPath, fmt.Sprintf("updates may not add a condition of type %q", kind)))
		case !equality.Semantic.DeepEqual(is, was):
			errs = append(
				errs,
				field.Forbidden(
					conditionsPath,
					fmt.Sprintf("updates may not modify a condition of type %q\n%v", kind, resource.Diff(was, is)),
				),
			)
		}
	}
	switch {
	case bytes.Equal(request.Status.Certificate, old.Status.Certificate):
	case !has.sign:
		errs = append(errs, field.Forbidden(certificatePath, "updates may not set certificate content"))
	case len(old.Status.Certificate) > 0:
		errs = append(errs, field.Forbidden(certificatePath, "updates may not modify existing certificate content"))
	}
	return errs
}
