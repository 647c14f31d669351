package dynamic

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/setpoint-io/setpoint/apiserver/storage"
)

// paramAccess lets only those write a policy with parameters, or its binding, who may
// read the parameters: what a policy answers would tell them what is in there.
type paramAccess struct {
	*admission.Handler
	authorizer authorizer.UnconditionalAuthorizer
	mapper     meta.RESTMapper
	store      *storage.Store
}

func (c Config) paramAccess() paramAccess {
	return paramAccess{admission.NewHandler(admission.Create, admission.Update), c.Authorizer, c.Mapper, c.Store}
}

// Validate implements admission.ValidationInterface.
func (p paramAccess) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetResource().Group != admissionregistrationv1.GroupName || a.GetSubresource() != "" || a.GetUserInfo() == nil ||
		slices.Contains(a.GetUserInfo().GetGroups(), user.SystemPrivilegedGroup) {
		return nil
	}
	now, refers := refer(a.GetObject())
	before, _ := refer(a.GetOldObject())
	if !refers || reflect.DeepEqual(now, before) {
		return nil
	}
	at, err := field.NewPath("spec", "paramKind"), error(nil)
	if now.policy == "" {
		err = p.mayReadKind(ctx, a.GetUserInfo(), now.kind)
	} else {
		at = field.NewPath("spec", "paramRef")
		err = p.mayReadObjects(ctx, a.GetUserInfo(), now)
	}
	if err == nil {
		return nil
	}
	return apierrors.NewInvalid(a.GetKind().GroupKind(), nameOf(a.GetObject()), field.ErrorList{field.Forbidden(at, err.Error())})
}

// reference is what a policy or binding says of parameters.
type reference struct {
	// kind is a policy's; policy, its own kind and ref are a binding's.
	kind     *admissionregistrationv1.ParamKind
	policy   string
	mutating bool
	ref      *admissionregistrationv1.ParamRef
}

// refer returns what an object says, and whether it says anything.
func refer(obj runtime.Object) (r reference, refers bool) {
	switch o := obj.(type) {
	case *admissionregistrationv1.ValidatingAdmissionPolicy:
		r.kind = o.Spec.ParamKind
	case *admissionregistrationv1.MutatingAdmissionPolicy:
		r.kind = o.Spec.ParamKind
	case *admissionregistrationv1.ValidatingAdmissionPolicyBinding:
		r.policy, r.ref = o.Spec.PolicyName, o.Spec.ParamRef
	case *admissionregistrationv1.MutatingAdmissionPolicyBinding:
		r.policy, r.mutating, r.ref = o.Spec.PolicyName, true, o.Spec.ParamRef
	}
	return r, r.kind != nil || r.ref != nil
}

func nameOf(obj runtime.Object) string {
	if named, ok := obj.(metav1.Object); ok {
		return named.GetName()
	}
	return ""
}

func (p paramAccess) mayReadKind(ctx context.Context, who user.Info, kind *admissionregistrationv1.ParamKind) error {
	asked, _ := p.resolve(kind)
	asked.User, asked.Verb, asked.Name, asked.Namespace = who, "get", "*", "*"
	if decision, _, err := p.authorizer.Authorize(ctx, asked); err != nil || decision == authorizer.DecisionAllow {
		return err
	}
	return fmt.Errorf(
		`user %v must have "get" permission on all objects of the referenced paramKind (kind=%s, apiVersion=%s)`,
		who,
		kind.Kind,
		kind.APIVersion,
	)
}

func (p paramAccess) mayReadObjects(ctx context.Context, who user.Info, r reference) error {
	asked, unresolved := authorizer.AttributesRecord{ResourceRequest: true, APIGroup: "*", APIVersion: "*", Resource: "*"}, error(nil)
	kind, err := p.kindOf(ctx, r)
	switch {
	case err != nil:
		unresolved = fmt.Errorf("get policy %s", r.policy)
	case kind != nil:
		asked, unresolved = p.resolve(kind)
	}
	asked.User, asked.Verb, asked.Name, asked.Namespace = who, "get", r.ref.Name, r.ref.Namespace
	if r.ref.Name == "" {
		asked.Verb = "list"
	}
	decision, _, err := p.authorizer.Authorize(ctx, asked)
	switch {
	case err != nil:
		return fmt.Errorf("failed to authorize request: %w", err)
	case decision == authorizer.DecisionAllow:
		return nil
	case unresolved != nil:
		return fmt.Errorf(
			`unable to %w to determine minimum required permissions and user %v does not have %q permission for all groups, versions and resources`,
			unresolved,
			who,
			asked.Verb,
		)
	default:
		return fmt.Errorf(`user %v does not have %q permission on the object referenced by paramRef`, who, asked.Verb)
	}
}

// kindOf returns the kind of the parameters of a binding's policy, as the cluster knows it now.
func (p paramAccess) kindOf(ctx context.Context, r reference) (*admissionregistrationv1.ParamKind, error) {
	plural := "validatingadmissionpolicies"
	if r.mutating {
		plural = "mutatingadmissionpolicies"
	}
	policy, err := p.store.Table(admissionregistrationv1.SchemeGroupVersion.WithResource(plural)).Get(ctx, "", r.policy, "")
	if err != nil {
		return nil, err
	}
	said, _ := refer(policy.Object())
	return said.kind, nil
}

// resolve returns what must be readable: as much as is known of the kind, else everything.
func (p paramAccess) resolve(kind *admissionregistrationv1.ParamKind) (authorizer.AttributesRecord, error) {
	asked := authorizer.AttributesRecord{ResourceRequest: true, APIGroup: "*", APIVersion: "*", Resource: "*"}
	gv, err := schema.ParseGroupVersion(kind.APIVersion)
	if err != nil {
		return asked, fmt.Errorf("parse paramKind %v", kind)
	}
	asked.APIGroup, asked.APIVersion = gv.Group, gv.Version
	mapping, err := p.mapper.RESTMapping(gv.WithKind(kind.Kind).GroupKind(), gv.Version)
	if err != nil {
		return asked, fmt.Errorf("resolve paramKind %v", kind)
	}
	asked.Resource = mapping.Resource.Resource
	return asked, nil
}
