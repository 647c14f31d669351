package admission

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
)

// claimStatus divides a ResourceClaim's status among those who write it: who allocates
// and reserves needs resourceclaims/binding, and what is said of a device, its driver's
// right to resourceclaims/driver: on the claim's own node or on any.
type claimStatus struct {
	onUpdate
	authorizer authorizer.Authorizer
}

// Validate implements admission.ValidationInterface.
func (c claimStatus) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	claim, isClaim := a.GetObject().(*resourcev1.ResourceClaim)
	old, wasClaim := a.GetOldObject().(*resourcev1.ResourceClaim)
	if a.GetSubresource() != "status" || !isClaim || !wasClaim {
		return nil
	}
	verb := "update"
	if info, ok := apirequest.RequestInfoFrom(ctx); ok {
		verb = info.Verb
	}
	errs := c.mayBind(ctx, a, verb, &claim.Status, &old.Status)
	errs = append(errs, c.mayReport(ctx, a, verb, &claim.Status, &old.Status)...)
	if len(errs) > 0 {
		return apierrors.NewInvalid(a.GetKind().GroupKind(), a.GetName(), errs)
	}
	return nil
}

func (c claimStatus) mayBind(
	ctx context.Context,
	a admission.Attributes,
	verb string,
	status, old *resourcev1.ResourceClaimStatus,
) field.ErrorList {
	if apiequality.Semantic.DeepEqual(status.Allocation, old.Allocation) &&
		apiequality.Semantic.DeepEqual(status.ReservedFor, old.ReservedFor) {
		return nil
	}
	// For all claims or none: devices are shared by namespaces.
	err := c.allows(ctx, a.GetUserInfo(), verb, resourcev1.SubresourceBinding, "", "")
	if err == nil {
		return nil
	}
	return field.ErrorList{field.Forbidden(
		field.NewPath("status"),
		fmt.Sprintf(
			"changing status.allocation or status.reservedFor requires resource=\"resourceclaims/binding\", verb=%q permission: %s",
			verb,
			err,
		),
	)}
}

func (c claimStatus) mayReport(
	ctx context.Context,
	a admission.Attributes,
	verb string,
	status, old *resourcev1.ResourceClaimStatus,
) field.ErrorList {
	verbs := []string{resourcev1.VerbPrefixArbitraryNode + verb}
	if node := onlyNode(status.Allocation); node != "" && livesOn(a.GetUserInfo(), node) {
		verbs = slices.Insert(verbs, 0, resourcev1.VerbPrefixAssociatedNode+verb)
	}
	var errs field.ErrorList
	for _, driver := range changedDrivers(status, old) {
		if err := c.allowsAny(ctx, a, verbs, driver); err != nil {
			errs = append(errs, field.Forbidden(field.NewPath("status", "devices"),
				fmt.Sprintf("changing status.devices requires resource=\"resourceclaims/driver\", verb=\"%s\" permission: %s", verbs, err)))
		}
	}
	return errs
}

// allowsAny returns what was said to the first verb if none is allowed.
func (c claimStatus) allowsAny(ctx context.Context, a admission.Attributes, verbs []string, driver string) (first error) {
	for _, verb := range verbs {
		err := c.allows(ctx, a.GetUserInfo(), verb, resourcev1.SubresourceDriver, a.GetNamespace(), driver)
		if err == nil {
			return nil
		}
		if first == nil {
			first = err
		}
	}
	return first
}

func (c claimStatus) allows(ctx context.Context, who user.Info, verb, subresource, namespace, name string) error {
	attributes := authorizer.AttributesRecord{
		User: who, Verb: verb, Namespace: namespace, Name: name, ResourceRequest: true,
		APIGroup: resourcev1.GroupName, APIVersion: resourcev1.SchemeGroupVersion.Version, Resource: "resourceclaims", Subresource: subresource,
	}
	decision, reason, err := c.authorizer.Authorize(ctx, attributes)
	switch {
	case decision == authorizer.DecisionAllow:
		return nil
	case err != nil && reason != "":
		reason = fmt.Sprintf("%v: %s", err, reason)
	case err != nil:
		reason = err.Error()
	}
	return responsewriters.ForbiddenStatusError(attributes, reason)
}

// changedDrivers are the drivers of devices whose status was added, changed or removed,
// in order. What goes with its allocation is no driver's: the claim drops it anyway.
func changedDrivers(status, old *resourcev1.ResourceClaimStatus) []string {
	type device struct{ driver, pool, device, share string }
	by := func(devices []resourcev1.AllocatedDeviceStatus) map[device]resourcev1.AllocatedDeviceStatus {
		all := map[device]resourcev1.AllocatedDeviceStatus{}
		for _, d := range devices {
			id := device{driver: d.Driver, pool: d.Pool, device: d.Device}
			if d.ShareID != nil {
				id.share = *d.ShareID
			}
			all[id] = d
		}
		return all
	}
	before, changed := by(old.Devices), map[string]bool{}
	for id, is := range by(status.Devices) {
		if was, known := before[id]; !known || !apiequality.Semantic.DeepEqual(was, is) {
			changed[id.driver] = true
		}
		delete(before, id)
	}
	for id := range before {
		if status.Allocation != nil {
			changed[id.driver] = true
		}
	}
	return slices.Sorted(maps.Keys(changed))
}

// onlyNode is the node that an allocation names; "" if it may be used on others.
func onlyNode(allocation *resourcev1.AllocationResult) string {
	if allocation == nil || allocation.NodeSelector == nil || len(allocation.NodeSelector.NodeSelectorTerms) != 1 {
		return ""
	}
	term := allocation.NodeSelector.NodeSelectorTerms[0]
	if len(term.MatchExpressions) > 0 || len(term.MatchFields) != 1 {
		return ""
	}
	name := term.MatchFields[0]
	if name.Key != metav1.ObjectNameField || name.Operator != corev1.NodeSelectorOpIn || len(name.Values) != 1 {
		return ""
	}
	return name.Values[0]
}

// livesOn reports whether a user is a service account whose token is bound to a node.
func livesOn(who user.Info, node string) bool {
	_, _, err := serviceaccount.SplitUsername(who.GetName())
	return err == nil && slices.Equal(who.GetExtra()[serviceaccount.NodeNameKey], []string{node})
}
