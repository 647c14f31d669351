package certificates

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/setpoint-io/setpoint/apiserver/kinds/column"
	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
	"github.com/setpoint-io/setpoint/apiserver/resource"
)

const (
	bundleBytesMax = 1 << 20
	// omitted stands in messages for what is too long to show.
	omitted = "<value omitted>"
)

type trustBundle = certificatesv1.ClusterTrustBundle

func trustBundles() resource.Kind[*trustBundle] {
	return resource.Kind[*trustBundle]{
		GroupVersionKind: certificatesv1.SchemeGroupVersion.WithKind("ClusterTrustBundle"),
		Plural:           "clustertrustbundles",
		ClusterScoped:    true,
		New:              func() *trustBundle { return &trustBundle{} },
		NewList:          func() runtime.Object { return &certificatesv1.ClusterTrustBundleList{} },
		// The name depends on the signer, so Validate judges it.
		ValidateName:           func(name string, _ bool) []string { return content.IsPathSegmentName(name) },
		Validate:               validateTrustBundle,
		ValidateUpdate:         validateTrustBundleUpdate,
		RequireResourceVersion: true,
		Fields:                 func(bundle *trustBundle) fields.Set { return fields.Set{"spec.signerName": bundle.Spec.SignerName} },
		Columns: []resource.Column[*trustBundle]{
			column.Name[*trustBundle](),
			column.Text(
				"SignerName",
				certificatesv1.ClusterTrustBundleSpec{}.SwaggerDoc()["signerName"],
				0,
				func(bundle *trustBundle) string {
					return column.OrNone(bundle.Spec.SignerName)
				},
			),
		},
	}
}

func validateTrustBundle(bundle *trustBundle) field.ErrorList {
	return append(validateBundleNames(bundle), validateAnchors(bundle.Spec.TrustBundle, field.NewPath("spec", "trustBundle"))...)
}

// validateTrustBundleUpdate reads the anchors only if they change: what a library
// accepts may change too.
func validateTrustBundleUpdate(bundle, old *trustBundle) field.ErrorList {
	errs := validateBundleNames(bundle)
	if bundle.Spec.TrustBundle != old.Spec.TrustBundle {
		errs = append(errs, validateAnchors(bundle.Spec.TrustBundle, field.NewPath("spec", "trustBundle"))...)
	}
	return append(
		errs,
		validation.ValidateImmutableField(bundle.Spec.SignerName, old.Spec.SignerName, field.NewPath("spec", "signerName"))...)
}

func validateBundleNames(bundle *trustBundle) field.ErrorList {
	var errs field.ErrorList
	errs = append(
		errs,
		rule.Invalid(bundle.Name, rule.TrustBundleName(bundle.Name, bundle.Spec.SignerName), field.NewPath("metadata", "name"))...)
	if bundle.Spec.SignerName == "" {
		return errs
	}
	return append(errs, rule.Signer(bundle.Spec.SignerName, field.NewPath("spec", "signerName"))...)
}

func validateAnchors(text string, path *field.Path) field.ErrorList {
	if len(text) > bundleBytesMax {
		return field.ErrorList{field.TooLong(path, "", bundleBytesMax)}
	}
	var errs field.ErrorList
	entries, order := map[string][]int{}, []string{}
	i := 0
	for block, rest := pem.Decode([]byte(text)); block != nil; block, rest = pem.Decode(rest) {
		if problem := anchorProblem(block); problem != "" {
			errs = append(errs, field.Invalid(path, omitted, fmt.Sprintf("entry %d %s", i, problem)))
		}
		key := string(block.Bytes)
		if entries[key] == nil {
			order = append(order, key)
		}
		entries[key] = append(entries[key], i)
		i++
	}
	switch {
	case len(errs) > 0:
		return errs
	case i == 0:
		return field.ErrorList{field.Invalid(path, omitted, "at least one trust anchor must be provided")}
	}
	for _, key := range order {
		if len(entries[key]) > 1 {
			errs = append(errs, field.Invalid(path, omitted, fmt.Sprintf("duplicate trust anchor (indices %v)", entries[key])))
		}
	}
	return errs
}

func anchorProblem(block *pem.Block) string {
	switch {
	case block.Type != certificateBlock:
		return "has bad block type: " + block.Type
	case len(block.Headers) > 0:
		return "has PEM block headers"
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	switch {
	case err != nil:
		return "does not parse as X.509"
	case !certificate.IsCA:
		return "does not have the CA bit set"
	case !certificate.BasicConstraintsValid:
		return "has invalid basic constraints"
	}
	return ""
}
