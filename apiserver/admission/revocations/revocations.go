package revocations

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/setpoint-io/setpoint/internal/revocation"
)

var (
	configMaps = schema.GroupResource{Resource: "configmaps"}

	errRevoker    = errors.New("the list of what is revoked is written by those who may update revocations.setpoint.io: administrators")
	errBinary     = errors.New("the list of what is revoked has no binary data")
	errRevokeSelf = errors.New("that is the name by which you ask: you would shut yourself out; ask as another administrator, " +
		"or name the certificate that leaked with --certificate")
)

// Plugin guards the list.
type Plugin struct {
	// Authorizer says who may write it.
	Authorizer authorizer.Authorizer
	// Server says why a server may not be shut out, beside those that revoked tells; nil: each may.
	Server func(ctx context.Context, name string, revoked func(name string) bool) error
}

// Name is what its time is measured under.
func (Plugin) Name() string { return "Revocations" }

// Handles implements admission.Interface.
func (Plugin) Handles(op admission.Operation) bool { return op != admission.Connect }

// Validate implements admission.ValidationInterface.
func (p Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if !isList(a) {
		return nil
	}
	if !p.mayWrite(ctx, a) {
		return admission.NewForbidden(a, errRevoker)
	}
	list, ok := a.GetObject().(*corev1.ConfigMap)
	if !ok { // it is deleted: everything is undone
		return nil
	}
	old, _ := a.GetOldObject().(*corev1.ConfigMap)
	if err := p.judge(ctx, a.GetUserInfo().GetName(), list, old); err != nil {
		return admission.NewForbidden(a, err)
	}
	return nil
}

// isList reports whether a request is about the list. One of a collection that is deleted names it by the object alone.
func isList(a admission.Attributes) bool {
	if a.GetResource().GroupResource() != configMaps || a.GetNamespace() != metav1.NamespaceSystem {
		return false
	}
	if old, ok := a.GetOldObject().(metav1.Object); ok && a.GetOperation() == admission.Delete {
		return old.GetName() == revocation.ConfigMapName
	}
	if object, ok := a.GetObject().(metav1.Object); ok && a.GetOperation() == admission.Create {
		return object.GetName() == revocation.ConfigMapName // the request of a create may carry none
	}
	return a.GetName() == revocation.ConfigMapName
}

func (p Plugin) mayWrite(ctx context.Context, a admission.Attributes) bool {
	decision, _, _ := p.Authorizer.Authorize(ctx, authorizer.AttributesRecord{
		User: a.GetUserInfo(), Verb: "update", APIGroup: "setpoint.io", APIVersion: "v1", Resource: "revocations", ResourceRequest: true,
	})
	return decision == authorizer.DecisionAllow
}

// judge says what is wrong with the list, of which old may be the one before.
func (p Plugin) judge(ctx context.Context, asking string, list, old *corev1.ConfigMap) error {
	if len(list.BinaryData) > 0 {
		return errBinary
	}
	entries, err := revocation.Read(list.Data)
	if err != nil {
		return err
	}
	revoked := map[string]bool{}
	for _, e := range entries {
		revoked[e.Target.String()] = true
	}
	for _, e := range entries {
		if old != nil && old.Data[e.DataKey()] != "" { // it is there already
			continue
		}
		if err := p.judgeNew(ctx, asking, e.Target, revoked); err != nil {
			return err
		}
	}
	return nil
}

func (p Plugin) judgeNew(ctx context.Context, asking string, t revocation.Target, revoked map[string]bool) error {
	switch {
	case t.Kind == revocation.User && t.Key == "" && t.Name == asking:
		return fmt.Errorf("%s: %w", t, errRevokeSelf)
	case t.Kind == revocation.Server && p.Server != nil:
		return p.Server(ctx, t.Name, func(name string) bool {
			return revoked[revocation.Target{Kind: revocation.Server, Name: name}.String()]
		})
	}
	return nil
}
