package admission

import (
	"context"
	"fmt"

	certificatesv1 "k8s.io/api/certificates/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

var (
	podCertificatesResource = schema.GroupResource{Group: certificatesv1.GroupName, Resource: "podcertificaterequests"}
	trustBundlesResource    = schema.GroupResource{Group: certificatesv1.GroupName, Resource: "clustertrustbundles"}
)

// podCertificateSigning lets only those answer a PodCertificateRequest who may sign
// for its signer.
type podCertificateSigning struct {
	onUpdate
	authorizer authorizer.Authorizer
}

// Validate implements admission.ValidationInterface.
func (p podCertificateSigning) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetResource().GroupResource() != podCertificatesResource || a.GetSubresource() != "status" {
		return nil
	}
	request, isRequest := a.GetObject().(*certificatesv1.PodCertificateRequest)
	old, wasRequest := a.GetOldObject().(*certificatesv1.PodCertificateRequest)
	if !isRequest || !wasRequest || apiequality.Semantic.DeepEqual(request.Status, old.Status) {
		return nil
	}
	signer := old.Spec.SignerName
	if maySign(ctx, p.authorizer, a.GetUserInfo(), "sign", signer) {
		return nil
	}
	return apierrors.NewInvalid(a.GetKind().GroupKind(), old.Name, field.ErrorList{field.Forbidden(field.NewPath("spec", "signerName"),
		fmt.Sprintf("User %q is not permitted to \"sign\" for signer %q", a.GetUserInfo().GetName(), signer))})
}

// trustBundleAttest lets only those write the ClusterTrustBundle of a signer who may
// attest for it.
type trustBundleAttest struct {
	*admission.Handler
	authorizer authorizer.Authorizer
}

func newTrustBundleAttest(judge authorizer.Authorizer) trustBundleAttest {
	return trustBundleAttest{admission.NewHandler(admission.Create, admission.Update), judge}
}

// Validate implements admission.ValidationInterface. What changes nothing but who owns
// the bundle is the garbage collector's.
func (t trustBundleAttest) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	bundle, ok := a.GetObject().(*certificatesv1.ClusterTrustBundle)
	if !isMain(a, trustBundlesResource) || !ok || bundle.Spec.SignerName == "" {
		return nil
	}
	if old, ok := a.GetOldObject().(*certificatesv1.ClusterTrustBundle); ok && apiequality.Semantic.DeepEqual(bare(bundle), bare(old)) {
		return nil
	}
	if maySign(ctx, t.authorizer, a.GetUserInfo(), "attest", bundle.Spec.SignerName) {
		return nil
	}
	return admission.NewForbidden(a, fmt.Errorf("user not permitted to attest for signerName %q", bundle.Spec.SignerName))
}

// bare leaves out what the garbage collector and the server write.
func bare(bundle *certificatesv1.ClusterTrustBundle) *certificatesv1.ClusterTrustBundle {
	b := bundle.DeepCopy()
	b.OwnerReferences, b.Finalizers, b.ManagedFields, b.ResourceVersion = nil, nil, nil, ""
	return b
}
