package networking

import (
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/setpoint-io/setpoint/apiserver/kinds/column"
	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
	"github.com/setpoint-io/setpoint/apiserver/resource"
)

// controllerLengthMax bounds the name of an ingress controller, in bytes.
const controllerLengthMax = 250

// parameterScopes in the order of messages.
var parameterScopes = []string{
	networkingv1.IngressClassParametersReferenceScopeCluster,
	networkingv1.IngressClassParametersReferenceScopeNamespace,
}

func ingressClasses() resource.Kind[*networkingv1.IngressClass] {
	return resource.Kind[*networkingv1.IngressClass]{
		GroupVersionKind: networkingv1.SchemeGroupVersion.WithKind("IngressClass"),
		Plural:           "ingressclasses",
		ClusterScoped:    true,
		New:              func() *networkingv1.IngressClass { return &networkingv1.IngressClass{} },
		NewList:          func() runtime.Object { return &networkingv1.IngressClassList{} },
		Default:          defaultIngressClass,
		Validate:         validateIngressClass,
		ValidateUpdate:   validateIngressClassUpdate,
		Spec:             func(class *networkingv1.IngressClass) any { return &class.Spec },
		Generation:       true,
		Columns:          ingressClassColumns(),
	}
}

func defaultIngressClass(class *networkingv1.IngressClass) {
	if class.Spec.Parameters != nil {
		rule.DefaultPointer(&class.Spec.Parameters.Scope, networkingv1.IngressClassParametersReferenceScopeCluster)
	}
}

func ingressClassColumns() []resource.Column[*networkingv1.IngressClass] {
	name := column.Name[*networkingv1.IngressClass]()
	name.Cell = func(class *networkingv1.IngressClass, _ time.Time) any {
		if class.Annotations[networkingv1.AnnotationIsDefaultIngressClass] == "true" {
			return class.Name + " (default)"
		}
		return class.Name
	}
	return []resource.Column[*networkingv1.IngressClass]{
		name,
		column.Text(
			"Controller",
			"Controller that is responsible for handling this class",
			0,
			func(class *networkingv1.IngressClass) string { return class.Spec.Controller },
		),
		column.Text("Parameters", "A reference to a resource with additional parameters", 0, parametersCell),
		column.Age[*networkingv1.IngressClass](),
	}
}

func parametersCell(class *networkingv1.IngressClass) string {
	switch p := class.Spec.Parameters; {
	case p == nil:
		return column.None
	case p.APIGroup != nil:
		return p.Kind + "." + *p.APIGroup + "/" + p.Name
	default:
		return p.Kind + "/" + p.Name
	}
}

func validateIngressClass(class *networkingv1.IngressClass) field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("spec")
	if len(class.Spec.Controller) > controllerLengthMax {
		errs = append(errs, field.TooLong(path.Child("controller"), "", controllerLengthMax))
	}
	errs = append(errs, utilvalidation.IsDomainPrefixedPath(path.Child("controller"), class.Spec.Controller)...)
	if class.Spec.Parameters != nil {
		errs = append(errs, validateParameters(class.Spec.Parameters, path.Child("parameters"))...)
	}
	return errs
}

func validateParameters(p *networkingv1.IngressClassParametersReference, path *field.Path) field.ErrorList {
	errs := validateReferenceParts(p.APIGroup, p.Kind, p.Name, path)
	if p.Scope == nil {
		return append(errs, field.Required(path.Child("scope"), ""))
	}
	errs = append(errs, rule.OneOf(*p.Scope, parameterScopes, path.Child("scope"))...)
	switch at := path.Child("namespace"); {
	case *p.Scope == networkingv1.IngressClassParametersReferenceScopeCluster && p.Namespace != nil:
		errs = append(errs, field.Forbidden(at, "`parameters.scope` is set to 'Cluster'"))
	case *p.Scope != networkingv1.IngressClassParametersReferenceScopeNamespace:
	case p.Namespace == nil:
		errs = append(errs, field.Required(at, "`parameters.scope` is set to 'Namespace'"))
	default:
		errs = append(errs, rule.Label(*p.Namespace, at)...)
	}
	return errs
}

func validateIngressClassUpdate(class, old *networkingv1.IngressClass) field.ErrorList {
	errs := validation.ValidateImmutableField(class.Spec.Controller, old.Spec.Controller, field.NewPath("spec", "controller"))
	return append(errs, validateIngressClass(class)...)
}
