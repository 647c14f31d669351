package certificates

import (
	"context"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
)

// approve says yes to the request of a node for its client certificate, if its author
// may ask and may have the name. Everything else waits for an administrator.
func (c *controller) approve(ctx context.Context, csr *certificatesv1.CertificateSigningRequest) error {
	request, err := parse(csr)
	if err != nil || csr.Spec.SignerName != certificatesv1.KubeAPIServerClientKubeletSignerName ||
		judgeNodeClient(request, csr.Spec.Usages) != nil {
		return nil
	}
	permission, message := "nodeclient", "Auto approving kubelet client certificate after SubjectAccessReview."
	itself := csr.Spec.Username == request.Subject.CommonName
	if itself {
		permission, message = "selfnodeclient", "Auto approving self kubelet client certificate after SubjectAccessReview."
	}
	free, err := c.mayHave(ctx, csr, request, itself)
	if err != nil || !free {
		return err
	}
	allowed, err := c.mayAsk(ctx, csr, permission)
	if err != nil || !allowed {
		return err
	}
	why, err := c.refusal(ctx, csr.Spec.Username, strings.TrimPrefix(request.Subject.CommonName, nodePrefix))
	if err != nil {
		return err
	}
	answer := certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "AutoApproved", Message: message,
	}
	if why != "" {
		answer.Type, answer.Reason, answer.Message = certificatesv1.CertificateDenied, "NameRefused", why
	}
	csr.Status.Conditions = append(csr.Status.Conditions, answer)
	_, err = c.env.Client.CertificatesV1().CertificateSigningRequests().UpdateApproval(ctx, csr.Name, csr, metav1.UpdateOptions{})
	return err
}

// refusal is why a node may not have the name, or "". A bootstrap token takes only so many names.
func (c *controller) refusal(ctx context.Context, author, node string) (why string, err error) {
	if err := c.JudgeName(node); err != nil {
		return err.Error(), nil
	}
	if token, ok := strings.CutPrefix(author, bootstrapapi.BootstrapUserPrefix); ok { // the token's id follows
		return c.Take(ctx, token, node)
	}
	return "", nil
}

func (c *controller) mayAsk(ctx context.Context, csr *certificatesv1.CertificateSigningRequest, permission string) (bool, error) {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: csr.Spec.Username, UID: csr.Spec.UID, Groups: csr.Spec.Groups,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Group: certificatesv1.GroupName, Version: "*", Resource: "certificatesigningrequests", Subresource: permission, Verb: "create",
		},
	}}
	for key, values := range csr.Spec.Extra {
		if review.Spec.Extra == nil {
			review.Spec.Extra = map[string]authorizationv1.ExtraValue{}
		}
		review.Spec.Extra[key] = authorizationv1.ExtraValue(values)
	}
	answer, err := c.env.Client.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	return answer.Status.Allowed, nil
}
