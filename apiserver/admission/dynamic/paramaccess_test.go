package dynamic

import (
	"context"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/setpoint-io/setpoint/apiserver/kinds"
	"github.com/setpoint-io/setpoint/apiserver/resource"
	"github.com/setpoint-io/setpoint/apiserver/storage"
	"github.com/setpoint-io/setpoint/raftstore/raftstoretest"
	"github.com/setpoint-io/setpoint/raftstore/state"
)

// grants allow "verb group/resource namespace/name", and nothing else.
type grants []string

func (g grants) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	asked := a.GetVerb() + " " + a.GetAPIGroup() + "/" + a.GetResource() + " " + a.GetNamespace() + "/" + a.GetName()
	for _, one := range g {
		if one == asked {
			return authorizer.DecisionAllow, "", nil
		}
	}
	return authorizer.DecisionNoOpinion, "", nil
}

func policyOn(name string, kind *admissionregistrationv1.ParamKind) *admissionregistrationv1.ValidatingAdmissionPolicy {
	p := &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.Spec.ParamKind = kind
	return p
}

func bindingTo(policy string, ref *admissionregistrationv1.ParamRef) *admissionregistrationv1.ValidatingAdmissionPolicyBinding {
	b := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: "b"}}
	b.Spec.PolicyName, b.Spec.ParamRef = policy, ref
	return b
}

func TestParametersMustBeReadable(t *testing.T) {
	store := storage.New(raftstoretest.NewLocal(state.Options{}), kinds.NewScheme(), kinds.All())
	secrets := &admissionregistrationv1.ParamKind{APIVersion: "v1", Kind: "Secret"}
	policy := policyOn("p", secrets)
	_, err := store.Table(admissionregistrationv1.SchemeGroupVersion.WithResource("validatingadmissionpolicies")).Write(t.Context(), "", "p", func(*storage.View) (*storage.Change, error) {
		return &storage.Change{Object: policy}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Secret"), meta.RESTScopeNamespace)
	one := &admissionregistrationv1.ParamRef{Name: "s", Namespace: "a"}
	some := &admissionregistrationv1.ParamRef{Selector: &metav1.LabelSelector{}}
	mutating := &admissionregistrationv1.MutatingAdmissionPolicy{Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{ParamKind: secrets}}
	for name, c := range map[string]struct {
		grants   grants
		obj, old resource.Object
		groups   []string
		want     string // of the refusal; empty: allowed
	}{
		"no parameters":                {nil, policyOn("q", nil), nil, nil, ""},
		"an administrator":             {nil, policy, nil, []string{user.SystemPrivilegedGroup}, ""},
		"a kind he may read":           {grants{"get /secrets */*"}, policy, nil, nil, ""},
		"a kind he may not":            {grants{"get /secrets a/s"}, policy, nil, nil, `spec.paramKind: Forbidden: user`},
		"a mutating policy":            {nil, mutating, nil, nil, `must have "get" permission on all objects of the referenced paramKind (kind=Secret, apiVersion=v1)`},
		"no new kind":                  {nil, policy, policyOn("p", secrets.DeepCopy()), nil, ""},
		"a kind that nobody knows":     {grants{"get x.example/* */*"}, policyOn("q", &admissionregistrationv1.ParamKind{APIVersion: "x.example/v1", Kind: "X"}), nil, nil, ""},
		"an object he may read":        {grants{"get /secrets a/s"}, bindingTo("p", one), nil, nil, ""},
		"an object he may not":         {grants{"get /secrets b/s"}, bindingTo("p", one), nil, nil, `does not have "get" permission on the object referenced by paramRef`},
		"objects by label":             {grants{"list /secrets /"}, bindingTo("p", some), nil, nil, ""},
		"objects by label, he may not": {grants{"get /secrets */*"}, bindingTo("p", some), nil, nil, `does not have "list" permission`},
		"a policy that is not there":   {grants{"get /secrets a/s"}, bindingTo("none", one), nil, nil, `unable to get policy none to determine minimum required permissions`},
		"another policy":               {nil, bindingTo("p", one), bindingTo("q", one), nil, `does not have "get" permission`},
		"nothing new":                  {nil, bindingTo("p", one), bindingTo("p", one.DeepCopy()), nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			operation := admission.Create
			if c.old != nil {
				operation = admission.Update
			}
			gvr := admissionregistrationv1.SchemeGroupVersion.WithResource("any")
			who := &user.DefaultInfo{Name: "jane", Groups: c.groups}
			a := admission.NewAttributesRecord(c.obj, c.old, admissionregistrationv1.SchemeGroupVersion.WithKind("Any"), "", c.obj.GetName(), gvr, "", operation, nil, false, who)
			err := Config{Store: store, Mapper: mapper, Authorizer: authorizer.AuthorizerFunc(c.grants.Authorize)}.paramAccess().Validate(t.Context(), a, nil)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}
