package certificates

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/types"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
)

// Limits of a pod's request. Expirations are in seconds.
const (
	uidLengthMax              = 128
	keyBytesMax               = 10 << 10
	maxExpirationMin          = 60 * 60
	maxExpirationMax          = 91 * 24 * 60 * 60
	maxExpirationMaxOfProject = 24 * 60 * 60
)

var (
	specPath = field.NewPath("spec")
	stubPath = specPath.Child("stubPKCS10Request")
)

func validatePodRequest(request *podRequest) field.ErrorList {
	spec := &request.Spec
	errs := rule.Signer(spec.SignerName, specPath.Child("signerName"))
	errs = append(errs, validateUserAnnotations(spec.UnverifiedUserAnnotations, specPath.Child("unverifiedUserAnnotations"))...)
	for _, part := range []struct {
		name, value string
		uid         types.UID
	}{
		{"pod", spec.PodName, spec.PodUID},
		{"serviceAccount", spec.ServiceAccountName, spec.ServiceAccountUID},
		{"node", string(spec.NodeName), spec.NodeUID},
	} {
		errs = append(errs, rule.Subdomain(part.value, specPath.Child(part.name+"Name"))...)
		errs = append(errs, validateUID(part.uid, specPath.Child(part.name+"UID"))...)
	}
	if spec.MaxExpirationSeconds == nil {
		return append(errs, field.Required(specPath.Child("maxExpirationSeconds"), "must be set"))
	}
	errs = append(errs, validateMaxExpiration(*spec.MaxExpirationSeconds, spec.SignerName)...)
	return append(errs, validateKey(request)...)
}

func validateUserAnnotations(annotations map[string]string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		errs = append(errs, utilvalidation.IsDomainPrefixedKey(path, strings.ToLower(key))...)
	}
	if err := validation.ValidateAnnotationsSize(annotations); err != nil {
		errs = append(errs, field.TooLong(path, "", validation.TotalAnnotationSizeLimitB))
	}
	return errs
}

func validateUID(uid types.UID, path *field.Path) field.ErrorList {
	switch {
	case uid == "":
		return field.ErrorList{field.Invalid(path, uid, "must not be empty")}
	case len(uid) > uidLengthMax:
		return field.ErrorList{field.TooLong(path, uid, uidLengthMax)}
	}
	return nil
}

func validateMaxExpiration(seconds int32, signer string) field.ErrorList {
	limit := int32(maxExpirationMax)
	if ofKubernetes(signer) {
		limit = maxExpirationMaxOfProject
	}
	if seconds >= maxExpirationMin && seconds <= limit {
		return nil
	}
	return field.ErrorList{
		field.Invalid(
			specPath.Child("maxExpirationSeconds"),
			seconds,
			fmt.Sprintf("must be in the range [%d, %d]", maxExpirationMin, limit),
		),
	}
}

// validateKey: the message speaks of what former versions had, too.
func validateKey(request *podRequest) field.ErrorList {
	if len(request.Spec.StubPKCS10Request) > 0 {
		return validateStub(request.Spec.StubPKCS10Request)
	}
	return field.ErrorList{
		field.Invalid(
			specPath,
			field.OmitValueType{},
			"exactly one of (stubPKCS10Request) or (pkixPublicKey, proofOfPossession) must be set",
		),
	}
}

func validateStub(text []byte) field.ErrorList {
	if len(text) > keyBytesMax {
		return field.ErrorList{field.TooLong(stubPath, text, keyBytesMax)}
	}
	stub, err := x509.ParseCertificateRequest(text)
	if err != nil {
		return field.ErrorList{field.Invalid(stubPath, field.OmitValueType{}, "must be a valid PKCS#10 CSR")}
	}
	if what, problem := keyProblem(stub.PublicKey); problem != "" {
		return field.ErrorList{field.Invalid(stubPath, what, problem)}
	}
	if stub.CheckSignature() != nil {
		return field.ErrorList{field.Invalid(stubPath, field.OmitValueType{}, "invalid signature")}
	}
	return nil
}

// keyProblem says why a kind of key is not accepted, and of what it says that.
func keyProblem(public any) (what any, problem string) {
	const small, large = 3072, 4096
	switch key := public.(type) {
	case ed25519.PublicKey:
		return nil, ""
	case *ecdsa.PublicKey:
		if !slices.Contains([]elliptic.Curve{elliptic.P256(), elliptic.P384(), elliptic.P521()}, key.Curve) {
			return "curve " + key.Curve.Params().Name, "elliptic public keys must use curve P256, P384, or P521"
		}
		return nil, ""
	case *rsa.PublicKey:
		if bits := key.Size() * 8; bits != small && bits != large {
			return fmt.Sprintf("%d-bit modulus", bits), "RSA keys must have modulus size 3072 or 4096"
		}
		return nil, ""
	}
	return field.OmitValueType{}, "unknown public key type; supported types are Ed25519, ECDSA, and RSA"
}

func validatePodRequestUpdate(request, old *podRequest) field.ErrorList {
	return validation.ValidateImmutableField(request.Spec, old.Spec, specPath)
}
