package admission

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/setpoint-io/setpoint/internal/trust"
)

var csrResource = schema.GroupResource{Group: certificatesv1.GroupName, Resource: "certificatesigningrequests"}

// signerGuard lets only those write a subresource of a CertificateSigningRequest who
// may do as much for its signer.
type signerGuard struct {
	onUpdate
	authorizer  authorizer.Authorizer
	subresource string
	verb        string
	// concerns reports whether a change needs the right at all.
	concerns func(csr, old *certificatesv1.CertificateSigningRequest) bool
}

func certificateApproval(a authorizer.Authorizer) signerGuard {
	return signerGuard{authorizer: a, subresource: "approval", verb: "approve",
		concerns: func(_, _ *certificatesv1.CertificateSigningRequest) bool { return true }}
}

func certificateSigning(a authorizer.Authorizer) signerGuard {
	return signerGuard{authorizer: a, subresource: "status", verb: "sign",
		concerns: func(csr, old *certificatesv1.CertificateSigningRequest) bool {
			return !bytes.Equal(csr.Status.Certificate, old.Status.Certificate) ||
				!apiequality.Semantic.DeepEqual(csr.Status.Conditions, old.Status.Conditions)
		}}
}

// Validate implements admission.ValidationInterface.
func (g signerGuard) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetResource().GroupResource() != csrResource || a.GetSubresource() != g.subresource {
		return nil
	}
	csr, isCSR := a.GetObject().(*certificatesv1.CertificateSigningRequest)
	old, wasCSR := a.GetOldObject().(*certificatesv1.CertificateSigningRequest)
	if !isCSR || !wasCSR {
		return admission.NewForbidden(a, fmt.Errorf("expected type CertificateSigningRequest, got: %T", a.GetObject()))
	}
	if !g.concerns(csr, old) || g.allows(ctx, a.GetUserInfo(), old.Spec.SignerName) {
		return nil
	}
	return admission.NewForbidden(a, fmt.Errorf("user not permitted to %s requests with signerName %q", g.verb, old.Spec.SignerName))
}

// allows asks for the signer itself, then for all signers of its domain.
func (g signerGuard) allows(ctx context.Context, who user.Info, signer string) bool {
	return maySign(ctx, g.authorizer, who, g.verb, signer)
}

func maySign(ctx context.Context, judge authorizer.Authorizer, who user.Info, verb, signer string) bool {
	domain, _, _ := strings.Cut(signer, "/")
	for _, name := range []string{signer, domain + "/*"} {
		decision, _, err := judge.Authorize(ctx, authorizer.AttributesRecord{
			User: who, Verb: verb, Name: name, ResourceRequest: true,
			APIGroup: certificatesv1.GroupName, APIVersion: "*", Resource: "signers",
		})
		if err == nil && decision == authorizer.DecisionAllow {
			return true
		}
	}
	return false
}

// certificateSubjectRestriction keeps everybody from asking to become an
// administrator whom no rule binds.
type certificateSubjectRestriction struct{ onCreate }

// Validate implements admission.ValidationInterface.
func (certificateSubjectRestriction) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if !isMain(a, csrResource) {
		return nil
	}
	csr, ok := a.GetObject().(*certificatesv1.CertificateSigningRequest)
	if !ok || csr.Spec.SignerName != certificatesv1.KubeAPIServerClientSignerName {
		return nil
	}
	asked, err := parseRequest(csr.Spec.Request)
	if err != nil {
		return admission.NewForbidden(a, fmt.Errorf("failed to parse CSR: %w", err))
	}
	if slices.ContainsFunc(asked.Subject.Organization, trust.ReservedGroup) {
		return admission.NewForbidden(a, fmt.Errorf("use of %s signer with the group of the cluster's servers is not allowed", csr.Spec.SignerName))
	}
	if slices.Contains(asked.Subject.Organization, user.SystemPrivilegedGroup) {
		return admission.NewForbidden(
			a,
			fmt.Errorf("use of %s signer with system:masters group is not allowed", certificatesv1.KubeAPIServerClientSignerName),
		)
	}
	return nil
}

func parseRequest(text []byte) (*x509.CertificateRequest, error) {
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "CERTIFICATE REQUEST" {
		return nil, errors.New("PEM block type must be CERTIFICATE REQUEST")
	}
	return x509.ParseCertificateRequest(block.Bytes)
}
