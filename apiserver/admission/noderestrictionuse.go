package admission

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/diff"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/component-helpers/storage/ephemeral"
)

// judgeClaimStatus: a node reports how large a volume has become, and nothing else.
func judgeClaimStatus(node string, a admission.Attributes) error {
	if a.GetSubresource() != "status" {
		return errors.New("may only update PVC status")
	}
	old, wasClaim := a.GetOldObject().(*corev1.PersistentVolumeClaim)
	claim, isClaim := a.GetObject().(*corev1.PersistentVolumeClaim)
	if !wasClaim || !isClaim || a.GetOperation() != admission.Update {
		return fmt.Errorf("unexpected operation %q", a.GetOperation())
	}
	if was, is := withoutReport(old), withoutReport(claim); !equality.Semantic.DeepEqual(was, is) {
		return fmt.Errorf(
			"node %q is not allowed to update fields other than status.quantity and status.conditions: %v",
			node,
			diff.Diff(was, is),
		)
	}
	return nil
}

// withoutReport leaves out what a node reports and what the server writes.
func withoutReport(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaim {
	c := claim.DeepCopy()
	c.ResourceVersion, c.ManagedFields = "", nil
	c.Status.Capacity, c.Status.Conditions = nil, nil
	c.Status.AllocatedResourceStatuses, c.Status.AllocatedResources = nil, nil
	return c
}

// judgeToken: a node gets tokens that are bound to its pods, for those whom the pods'
// volumes name.
func (r nodeRestriction) judgeToken(ctx context.Context, node string, a admission.Attributes) error {
	if a.GetOperation() != admission.Create || a.GetSubresource() != "token" {
		return nil
	}
	asked, ok := a.GetObject().(*authenticationv1.TokenRequest)
	if !ok {
		return fmt.Errorf("unexpected type %T", a.GetObject())
	}
	ref := asked.Spec.BoundObjectRef
	if ref == nil || ref.APIVersion != "v1" || ref.Kind != "Pod" || ref.Name == "" {
		return errors.New("node requested token not bound to a pod")
	}
	if ref.UID == "" {
		return errors.New("node requested token with a pod binding without a uid")
	}
	pod, err := r.pod(ctx, a.GetNamespace(), ref.Name)
	switch {
	case err != nil:
		return err
	case ref.UID != pod.UID:
		return fmt.Errorf(
			"the UID in the bound object reference (%s) does not match the UID in record. The object might have been deleted and then recreated",
			ref.UID,
		)
	case pod.Spec.NodeName != node:
		return errors.New("node requested token bound to a pod scheduled on a different node")
	}
	return r.judgeAudience(ctx, asked.Spec.Audiences, pod, a)
}

// judgeAudience lets pass whom a volume of the pod names, or whom the node's roles allow:
// verb request-serviceaccounts-token-audience, the audience as resource.
func (r nodeRestriction) judgeAudience(ctx context.Context, audiences []string, pod *corev1.Pod, a admission.Attributes) error {
	audience := ""
	if len(audiences) > 1 {
		return errors.New("node may only request 0 or 1 audiences")
	} else if len(audiences) == 1 {
		audience = audiences[0]
	}
	named, err := r.namesAudience(ctx, pod, audience)
	if err != nil {
		return fmt.Errorf("error validating audience %q: %w", audience, err)
	}
	if named || r.mayAsk(ctx, a, "request-serviceaccounts-token-audience", audience, a.GetName()) {
		return nil
	}
	return fmt.Errorf("%s is not authorized to request tokens for audience %q", a.GetUserInfo().GetName(), audience)
}

// mayAsk asks for a verb that the authorizer of nodes does not know: roles do.
func (r nodeRestriction) mayAsk(ctx context.Context, a admission.Attributes, verb, resource, name string) bool {
	decision, _, _ := r.authorizer.Authorize(ctx, authorizer.AttributesRecord{
		User: a.GetUserInfo(), Verb: verb, APIGroup: a.GetResource().Group, APIVersion: a.GetResource().Version,
		Resource: resource, Namespace: a.GetNamespace(), Name: name, ResourceRequest: true,
	})
	return decision == authorizer.DecisionAllow
}

// namesAudience reports whether a volume of the pod wants a token for the audience.
func (r nodeRestriction) namesAudience(ctx context.Context, pod *corev1.Pod, audience string) (bool, error) {
	var errs []error
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		for _, p := range projections(*v) {
			if p.ServiceAccountToken != nil && p.ServiceAccountToken.Audience == audience {
				return true, nil
			}
		}
		named, err := r.driverNames(ctx, pod, v, audience)
		if named {
			return true, nil
		}
		if err != nil {
			errs = append(errs, err)
		}
	}
	return false, errors.Join(errs...)
}

// driverNames: a CSI driver says which tokens it is handed.
func (r nodeRestriction) driverNames(ctx context.Context, pod *corev1.Pod, v *corev1.Volume, audience string) (bool, error) {
	name, err := "", error(nil)
	switch {
	case v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate != nil:
		name, err = r.driverOf(ctx, pod.Namespace, ephemeral.VolumeClaimName(pod, v))
	case v.PersistentVolumeClaim != nil:
		name, err = r.driverOf(ctx, pod.Namespace, v.PersistentVolumeClaim.ClaimName)
	case v.CSI != nil:
		name = v.CSI.Driver
	}
	if err != nil || name == "" {
		return false, err
	}
	driver, found, err := r.drivers.get(ctx, "", name)
	if err != nil || !found {
		return false, errors.Join(err, fmt.Errorf("csidriver.storage.k8s.io %q not found", name))
	}
	for _, request := range driver.Spec.TokenRequests {
		if request.Audience == audience {
			return true, nil
		}
	}
	return false, nil
}

// driverOf is the CSI driver of a claim's volume, "" for another one.
func (r nodeRestriction) driverOf(ctx context.Context, namespace, claimName string) (string, error) {
	claim, found, err := r.claims.get(ctx, namespace, claimName)
	if err != nil || !found {
		return "", errors.Join(err, fmt.Errorf("persistentvolumeclaim %q not found", claimName))
	}
	volume, found, err := r.volumes.get(ctx, "", claim.Spec.VolumeName)
	if err != nil || !found {
		return "", errors.Join(err, fmt.Errorf("persistentvolume %q not found", claim.Spec.VolumeName))
	}
	if volume.Spec.CSI == nil {
		return "", nil
	}
	return volume.Spec.CSI.Driver, nil
}

// judgePodCertificate: a node asks for certificates of its pods, from signers whom their
// volumes name.
func (r nodeRestriction) judgePodCertificate(ctx context.Context, node string, a admission.Attributes) error {
	if a.GetOperation() != admission.Create {
		return fmt.Errorf("unexpected operation %v", a.GetOperation())
	}
	if a.GetSubresource() != "" {
		return fmt.Errorf("unexpected subresource %v", a.GetSubresource())
	}
	request, ok := a.GetObject().(*certificatesv1.PodCertificateRequest)
	if !ok {
		return fmt.Errorf("unexpected type %T", a.GetObject())
	}
	spec, podKey := &request.Spec, a.GetNamespace()+"/"+request.Spec.PodName
	if string(spec.NodeName) != node {
		return fmt.Errorf("PodCertificateRequest.Spec.NodeName=%q, which is not the requesting node %q", spec.NodeName, node)
	}
	pod, err := r.pod(ctx, a.GetNamespace(), spec.PodName)
	if err != nil {
		return err
	}
	if err := r.checkUIDs(ctx, a.GetNamespace(), spec, pod, podKey); err != nil {
		return err
	}
	switch {
	case pod.Spec.NodeName != node:
		return fmt.Errorf("pod %q is not running on node %q named in the PodCertificateRequest", podKey, node)
	case isMirror(pod):
		return fmt.Errorf("pod %q is a mirror pod", podKey)
	case spec.ServiceAccountName != pod.Spec.ServiceAccountName:
		return fmt.Errorf(
			"PodCertificateRequest for pod %q contains serviceAccountName (%q) that differs from running pod (%q)",
			podKey,
			spec.ServiceAccountName,
			pod.Spec.ServiceAccountName,
		)
	case namesSigner(pod, spec.SignerName):
		return nil
	}
	// Roles know no resources with slashes.
	if r.mayAsk(
		ctx,
		a,
		"request-serviceaccounts-podcertificate-signer",
		strings.ReplaceAll(spec.SignerName, "/", ":"),
		spec.ServiceAccountName,
	) {
		return nil
	}
	return fmt.Errorf("pod %q does not mount a podCertificate projected volume for signer %q", podKey, spec.SignerName)
}

// checkUIDs compares the request with the objects that are there now. What differs may be
// there in a moment: the answer is not Forbidden.
func (r nodeRestriction) checkUIDs(
	ctx context.Context,
	namespace string,
	spec *certificatesv1.PodCertificateRequestSpec,
	pod *corev1.Pod,
	podKey string,
) error {
	node, found, err := r.nodes.get(ctx, "", string(spec.NodeName))
	if err != nil || !found {
		return asIs{errors.Join(err, fmt.Errorf("while retrieving node %q named in the PodCertificateRequest: not found", spec.NodeName))}
	}
	account, found, err := r.accounts.get(ctx, namespace, spec.ServiceAccountName)
	if err != nil || !found {
		return asIs{
			errors.Join(
				err,
				fmt.Errorf(
					"while retrieving service account %q named in the PodCertificateRequest: not found",
					namespace+"/"+spec.ServiceAccountName,
				),
			),
		}
	}
	switch {
	case node.UID != spec.NodeUID:
		return asIs{
			fmt.Errorf(
				"PodCertificateRequest for pod %q names node UID %q, inconsistent with the running node (%q)",
				podKey,
				spec.NodeUID,
				node.UID,
			),
		}
	case pod.UID != spec.PodUID:
		return asIs{
			fmt.Errorf(
				"PodCertificateRequest for pod %q contains pod UID (%q) which differs from running pod %q",
				podKey,
				spec.PodUID,
				pod.UID,
			),
		}
	case account.UID != spec.ServiceAccountUID:
		return asIs{
			fmt.Errorf(
				"PodCertificateRequest for pod %q names service account UID %q, which differs from the running service account (%q)",
				podKey,
				spec.ServiceAccountUID,
				account.UID,
			),
		}
	}
	return nil
}

func namesSigner(pod *corev1.Pod, signer string) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
		return slices.ContainsFunc(projections(v), func(p corev1.VolumeProjection) bool {
			return p.PodCertificate != nil && p.PodCertificate.SignerName == signer
		})
	})
}
