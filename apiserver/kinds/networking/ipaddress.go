package networking

import (
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/setpoint-io/setpoint/apiserver/kinds/column"
	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
	"github.com/setpoint-io/setpoint/apiserver/resource"
)

func ipAddresses() resource.Kind[*networkingv1.IPAddress] {
	return resource.Kind[*networkingv1.IPAddress]{
		GroupVersionKind: networkingv1.SchemeGroupVersion.WithKind("IPAddress"),
		Plural:           "ipaddresses",
		ShortNames:       []string{"ip"},
		ClusterScoped:    true,
		New:              func() *networkingv1.IPAddress { return &networkingv1.IPAddress{} },
		NewList:          func() runtime.Object { return &networkingv1.IPAddressList{} },
		ValidateName:     addressName,
		Validate:         validateIPAddress,
		ValidateUpdate:   validateIPAddressUpdate,
		Columns: []resource.Column[*networkingv1.IPAddress]{
			column.Name[*networkingv1.IPAddress](),
			column.Text("ParentRef", networkingv1.IPAddressSpec{}.SwaggerDoc()["parentRef"], 0, parentCell),
		},
	}
}

// addressName: the name is the address, in the one form that all write it in, so two
// objects cannot claim the same.
func addressName(name string, _ bool) []string {
	var messages []string
	for _, err := range rule.IP(name, nil) {
		messages = append(messages, err.Detail)
	}
	return messages
}

func parentCell(address *networkingv1.IPAddress) string {
	parent := address.Spec.ParentRef
	if parent == nil {
		return column.None
	}
	parts := []string{strings.ToLower(schema.GroupResource{Group: parent.Group, Resource: parent.Resource}.String())}
	if parent.Namespace != "" {
		parts = append(parts, parent.Namespace)
	}
	return strings.Join(append(parts, parent.Name), "/")
}

func validateIPAddress(address *networkingv1.IPAddress) field.ErrorList {
	path, parent := field.NewPath("spec", "parentRef"), address.Spec.ParentRef
	if parent == nil {
		return field.ErrorList{field.Required(path, "")}
	}
	var errs field.ErrorList
	if parent.Group != "" {
		errs = append(errs, rule.Subdomain(parent.Group, path.Child("group"))...)
	}
	errs = append(errs, requiredSegment(parent.Resource, path.Child("resource"))...)
	errs = append(errs, requiredSegment(parent.Name, path.Child("name"))...)
	if parent.Namespace != "" {
		errs = append(errs, rule.PathSegment(parent.Namespace, path.Child("namespace"))...)
	}
	return errs
}

func validateIPAddressUpdate(address, old *networkingv1.IPAddress) field.ErrorList {
	errs := validateIPAddress(address)
	if address.Spec.ParentRef == nil {
		return errs
	}
	return append(errs, rule.Immutable(address.Spec.ParentRef, old.Spec.ParentRef, field.NewPath("spec", "parentRef"))...)
}
