package networking

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	netutils "k8s.io/utils/net"

	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
)

// classAnnotation named the class before there was a field for it.
const classAnnotation = "kubernetes.io/ingress.class"

// pathTypes in the order of messages.
var pathTypes = []networkingv1.PathType{
	networkingv1.PathTypeExact,
	networkingv1.PathTypeImplementationSpecific,
	networkingv1.PathTypePrefix,
}

// kept is what an update may keep because the stored ingress has it: releases
// before these rules have let it in.
type kept struct{ secretNames, wildcardRules bool }

func validateNewIngress(ingress *networkingv1.Ingress) field.ErrorList {
	errs := validateIngress(&ingress.Spec, kept{})
	class := ingress.Spec.IngressClassName
	if annotation, annotated := ingress.Annotations[classAnnotation]; annotated && class != nil && *class != annotation {
		errs = append(
			errs,
			field.Invalid(
				field.NewPath("annotations").Child(classAnnotation),
				annotation,
				"must match `ingressClassName` when both are specified",
			),
		)
	}
	return errs
}

func validateIngressUpdate(ingress, old *networkingv1.Ingress) field.ErrorList {
	return validateIngress(&ingress.Spec, kept{
		secretNames: slices.ContainsFunc(
			old.Spec.TLS,
			func(tls networkingv1.IngressTLS) bool { return len(validateTLSSecret(tls.SecretName, nil)) > 0 },
		),
		wildcardRules: slices.ContainsFunc(old.Spec.Rules, func(r networkingv1.IngressRule) bool {
			return strings.Contains(r.Host, "*") && len(validatePaths(r.HTTP, nil)) > 0
		}),
	})
}

func validateIngress(spec *networkingv1.IngressSpec, may kept) field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("spec")
	if len(spec.Rules) == 0 && spec.DefaultBackend == nil {
		errs = append(errs, field.Invalid(path, spec.Rules, "either `defaultBackend` or `rules` must be specified"))
	}
	if spec.DefaultBackend != nil {
		errs = append(errs, validateBackend(spec.DefaultBackend, path.Child("defaultBackend"))...)
	}
	for i := range spec.Rules {
		errs = append(errs, validateHostRule(&spec.Rules[i], may.wildcardRules, path.Child("rules").Index(i))...)
	}
	for i := range spec.TLS {
		at := path.Child("tls").Index(i)
		for j, host := range spec.TLS[i].Hosts {
			errs = append(errs, validateHost(host, at.Child("hosts").Index(j))...)
		}
		if !may.secretNames {
			errs = append(errs, validateTLSSecret(spec.TLS[i].SecretName, at.Child("secretName"))...)
		}
	}
	if spec.IngressClassName != nil {
		errs = append(errs, rule.Subdomain(*spec.IngressClassName, path.Child("ingressClassName"))...)
	}
	return errs
}

func validateTLSSecret(name string, path *field.Path) field.ErrorList {
	if name == "" {
		return nil
	}
	return rule.Subdomain(name, path)
}

// validateHost accepts a name, or a star in place of its first label.
func validateHost(host string, path *field.Path) field.ErrorList {
	if !strings.Contains(host, "*") {
		return rule.Subdomain(host, path)
	}
	return rule.Invalid(host, utilvalidation.IsWildcardDNS1123Subdomain(host), path)
}

func validateHostRule(r *networkingv1.IngressRule, wildcardRules bool, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if r.Host != "" {
		errs = append(errs, notAnIP(r.Host, path.Child("host"))...)
		errs = append(errs, validateHost(r.Host, path.Child("host"))...)
	}
	if wildcardRules && strings.Contains(r.Host, "*") {
		return errs
	}
	return append(errs, validatePaths(r.HTTP, path.Child("http"))...)
}

func notAnIP(host string, path *field.Path) field.ErrorList {
	if netutils.ParseIPSloppy(host) == nil {
		return nil
	}
	return field.ErrorList{field.Invalid(path, host, "must be a DNS name, not an IP address")}
}

func validatePaths(http *networkingv1.HTTPIngressRuleValue, path *field.Path) field.ErrorList {
	if http == nil {
		return nil
	}
	if len(http.Paths) == 0 {
		return field.ErrorList{field.Required(path.Child("paths"), "")}
	}
	var errs field.ErrorList
	for i := range http.Paths {
		errs = append(errs, validatePath(&http.Paths[i], path.Child("paths").Index(i))...)
	}
	return errs
}

func validatePath(p *networkingv1.HTTPIngressPath, path *field.Path) field.ErrorList {
	if p.PathType == nil {
		return field.ErrorList{field.Required(path.Child("pathType"), "pathType must be specified")}
	}
	var errs field.ErrorList
	specific := *p.PathType == networkingv1.PathTypeImplementationSpecific
	switch at := path.Child("path"); {
	case !slices.Contains(pathTypes, *p.PathType):
		errs = append(errs, field.NotSupported(path.Child("pathType"), *p.PathType, pathTypes))
	case specific && p.Path == "":
	default:
		if !strings.HasPrefix(p.Path, "/") {
			errs = append(errs, field.Invalid(at, p.Path, "must be an absolute path"))
		}
		if !specific {
			errs = append(errs, validateLiteralPath(p.Path, at)...)
		}
	}
	return append(errs, validateBackend(&p.Backend, path.Child("backend"))...)
}

// validateLiteralPath refuses what routers understand in different ways.
func validateLiteralPath(text string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, part := range []string{"//", "/./", "/../", "%2f", "%2F"} {
		if strings.Contains(text, part) {
			errs = append(errs, field.Invalid(path, text, "must not contain '"+part+"'"))
		}
	}
	for _, end := range []string{"/..", "/."} {
		if strings.HasSuffix(text, end) {
			errs = append(errs, field.Invalid(path, text, "cannot end with '"+end+"'"))
		}
	}
	return errs
}

func validateBackend(backend *networkingv1.IngressBackend, path *field.Path) field.ErrorList {
	switch {
	case backend.Resource != nil && backend.Service != nil:
		return field.ErrorList{field.Invalid(path, "", "cannot set both resource and service backends")}
	case backend.Resource != nil:
		return validateReference(backend.Resource, path.Child("resource"))
	case backend.Service != nil:
		return validateServiceBackend(backend.Service, path)
	}
	return field.ErrorList{field.Invalid(path, "", "resource or service backend is required")}
}

// validateServiceBackend: what is wrong with the port as a whole is said of the backend.
func validateServiceBackend(service *networkingv1.IngressServiceBackend, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	at, port := path.Child("service"), service.Port
	if service.Name == "" {
		errs = append(errs, field.Required(at.Child("name"), ""))
	} else {
		errs = append(errs, rule.Label(service.Name, at.Child("name"))...)
	}
	switch {
	case port.Name != "" && port.Number != 0:
		return append(errs, field.Invalid(path, "", "cannot set both port name & port number"))
	case port.Name != "":
		errs = append(errs, rule.Invalid(port.Name, utilvalidation.IsValidPortName(port.Name), at.Child("port", "name"))...)
		return errs
	case port.Number != 0:
		return append(errs, rule.Port(port.Number, at.Child("port", "number"))...)
	}
	return append(errs, field.Required(path, "port name or number is required"))
}

func validateReference(ref *corev1.TypedLocalObjectReference, path *field.Path) field.ErrorList {
	return validateReferenceParts(ref.APIGroup, ref.Kind, ref.Name, path)
}

func validateReferenceParts(group *string, kind, name string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if group != nil {
		errs = append(errs, rule.Subdomain(*group, path.Child("apiGroup"))...)
	}
	errs = append(errs, requiredSegment(kind, path.Child("kind"))...)
	return append(errs, requiredSegment(name, path.Child("name"))...)
}

func requiredSegment(name string, path *field.Path) field.ErrorList {
	if name == "" {
		return rule.Required(name, path)
	}
	return rule.PathSegment(name, path)
}

func validateIngressStatus(ingress, old *networkingv1.Ingress) field.ErrorList {
	var stored []string
	for _, point := range old.Status.LoadBalancer.Ingress {
		if point.IP != "" {
			stored = append(stored, point.IP)
		}
	}
	var errs field.ErrorList
	for i, point := range ingress.Status.LoadBalancer.Ingress {
		at := field.NewPath("status", "loadBalancer", "ingress").Index(i)
		if point.IP != "" {
			errs = append(errs, utilvalidation.IsValidIPForLegacyField(at.Child("ip"), point.IP, true, stored)...)
		}
		if point.Hostname != "" {
			errs = append(errs, rule.Subdomain(point.Hostname, at.Child("hostname"))...)
			errs = append(errs, notAnIP(point.Hostname, at.Child("hostname"))...)
		}
	}
	return errs
}
