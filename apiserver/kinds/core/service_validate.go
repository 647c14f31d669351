package core

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	netutils "k8s.io/utils/net"
	"k8s.io/utils/ptr"

	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
)

var (
	serviceTypes = []corev1.ServiceType{
		corev1.ServiceTypeClusterIP,
		corev1.ServiceTypeExternalName,
		corev1.ServiceTypeLoadBalancer,
		corev1.ServiceTypeNodePort,
	}
	affinities       = []corev1.ServiceAffinity{corev1.ServiceAffinityClientIP, corev1.ServiceAffinityNone}
	ipFamilies       = []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}
	internalPolicies = []corev1.ServiceInternalTrafficPolicy{
		corev1.ServiceInternalTrafficPolicyCluster,
		corev1.ServiceInternalTrafficPolicyLocal,
	}
	externalPolicies = []corev1.ServiceExternalTrafficPolicy{
		corev1.ServiceExternalTrafficPolicyCluster,
		corev1.ServiceExternalTrafficPolicyLocal,
	}
	distributions = []string{corev1.ServiceTrafficDistributionPreferClose, "PreferSameNode", "PreferSameZone"}
)

// affinitySecondsMax is one day.
const affinitySecondsMax = 86400

func validateServiceCreate(svc *corev1.Service) field.ErrorList {
	return validateService(svc, &corev1.Service{})
}

// validateService judges a Service; of some fields it leaves values alone that the old one, which may be empty, has already.
func validateService(svc, old *corev1.Service) field.ErrorList {
	spec, path := &svc.Spec, field.NewPath("spec")
	errs := validateServiceHead(svc, path)
	errs = append(errs, validateServicePorts(svc, path.Child("ports"))...)
	errs = append(errs, metav1validation.ValidateLabels(spec.Selector, path.Child("selector"))...)
	errs = append(errs, validateAffinityOfClients(spec, path)...)
	errs = append(errs, validateServiceType(svc, path)...)
	errs = append(errs, validateClusterIPs(svc, path)...)
	errs = append(errs, validateExternalIPs(spec.ExternalIPs, path.Child("externalIPs"))...)
	errs = append(errs, validateLoadBalancerFields(svc, path)...)
	errs = append(errs, validateSourceRanges(svc, old, path.Child("LoadBalancerSourceRanges"))...)
	errs = append(errs, validateTrafficPolicies(svc, path)...)
	return errs
}

// validateServiceHead judges the number of ports against what the Service is.
func validateServiceHead(svc *corev1.Service, path *field.Path) field.ErrorList {
	headless := svc.Spec.ClusterIP == corev1.ClusterIPNone
	if len(svc.Spec.Ports) == 0 && !headless && svc.Spec.Type != corev1.ServiceTypeExternalName {
		return field.ErrorList{field.Required(path.Child("ports"), "")}
	}
	if svc.Spec.Type == corev1.ServiceTypeLoadBalancer && headless {
		return field.ErrorList{
			field.Invalid(path.Child("clusterIPs").Index(0), svc.Spec.ClusterIP, "may not be set to 'None' for LoadBalancer services"),
		}
	}
	if svc.Spec.Type == corev1.ServiceTypeNodePort && headless {
		return field.ErrorList{
			field.Invalid(path.Child("clusterIPs").Index(0), svc.Spec.ClusterIP, "may not be set to 'None' for NodePort services"),
		}
	}
	return nil
}

func validateServicePorts(svc *corev1.Service, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	ports := svc.Spec.Ports
	names := map[string]bool{}
	for i := range ports {
		errs = append(errs, validateServicePort(svc, &ports[i], len(ports) > 1, names, path.Index(i))...)
	}
	type key struct {
		protocol corev1.Protocol
		port     int32
	}
	seen, nodeSeen := map[key]bool{}, map[key]bool{}
	for i, p := range ports {
		if k := (key{p.Protocol, p.Port}); seen[k] {
			errs = append(errs, field.Duplicate(path.Index(i), corev1.ServicePort{Protocol: p.Protocol, Port: p.Port}))
		} else {
			seen[k] = true
		}
		if k := (key{p.Protocol, p.NodePort}); p.NodePort != 0 && nodeSeen[k] {
			errs = append(errs, field.Duplicate(path.Index(i).Child("nodePort"), p.NodePort))
		} else {
			nodeSeen[k] = true
		}
	}
	return errs
}

func validateServicePort(
	svc *corev1.Service,
	p *corev1.ServicePort,
	nameRequired bool,
	names map[string]bool,
	path *field.Path,
) field.ErrorList {
	var errs field.ErrorList
	switch {
	case p.Name == "" && nameRequired:
		errs = append(errs, field.Required(path.Child("name"), ""))
	case p.Name != "":
		errs = append(errs, rule.Label(p.Name, path.Child("name"))...)
		if names[p.Name] {
			errs = append(errs, field.Duplicate(path.Child("name"), p.Name))
		}
		names[p.Name] = true
	}
	errs = append(errs, rule.Port(p.Port, path.Child("port"))...)
	errs = append(errs, rule.Protocol(p.Protocol, path.Child("protocol"))...)
	errs = append(errs, rule.PortOrName(p.TargetPort, path.Child("targetPort"))...)
	if p.AppProtocol != nil {
		errs = append(errs, rule.QualifiedName(*p.AppProtocol, path.Child("appProtocol"))...)
	}
	if p.NodePort != 0 && svc.Spec.Type == corev1.ServiceTypeClusterIP {
		errs = append(errs, field.Forbidden(path.Child("nodePort"), "may not be used when `type` is '"+string(svc.Spec.Type)+"'"))
	}
	return errs
}

func validateAffinityOfClients(spec *corev1.ServiceSpec, path *field.Path) field.ErrorList {
	if spec.SessionAffinity == "" {
		return field.ErrorList{field.Required(path.Child("sessionAffinity"), "")}
	}
	errs := rule.OneOf(spec.SessionAffinity, affinities, path.Child("sessionAffinity"))
	config := spec.SessionAffinityConfig
	if spec.SessionAffinity == corev1.ServiceAffinityNone && config != nil {
		return append(errs, field.Forbidden(path.Child("sessionAffinityConfig"),
			fmt.Sprintf("must not be set when session affinity is %s", corev1.ServiceAffinityNone)))
	}
	if spec.SessionAffinity != corev1.ServiceAffinityClientIP {
		return errs
	}
	seconds := path.Child("sessionAffinityConfig", "clientIP", "timeoutSeconds")
	switch {
	case config == nil || config.ClientIP == nil || config.ClientIP.TimeoutSeconds == nil:
		errs = append(errs, field.Required(seconds, fmt.Sprintf("when session affinity is %s", corev1.ServiceAffinityClientIP)))
	case *config.ClientIP.TimeoutSeconds <= 0 || *config.ClientIP.TimeoutSeconds > affinitySecondsMax:
		errs = append(
			errs,
			field.Invalid(
				seconds,
				*config.ClientIP.TimeoutSeconds,
				fmt.Sprintf("must be greater than 0 and less than %d", affinitySecondsMax),
			),
		)
	}
	return errs
}

func validateServiceType(svc *corev1.Service, path *field.Path) field.ErrorList {
	if svc.Spec.Type == "" {
		return field.ErrorList{field.Required(path.Child("type"), "")}
	}
	if svc.Spec.Type != corev1.ServiceTypeExternalName {
		return rule.OneOf(svc.Spec.Type, serviceTypes, path.Child("type"))
	}
	var errs field.ErrorList
	for _, forbidden := range []struct {
		set  bool
		name string
	}{
		{svc.Spec.ClusterIP != "" || len(svc.Spec.ClusterIPs) > 0, "clusterIPs"},
		{len(svc.Spec.IPFamilies) > 0, "ipFamilies"},
		{svc.Spec.IPFamilyPolicy != nil, "ipFamilyPolicy"},
	} {
		if forbidden.set {
			errs = append(errs, field.Forbidden(path.Child(forbidden.name), "may not be set for ExternalName services"))
		}
	}
	name := strings.TrimSuffix(svc.Spec.ExternalName, ".")
	if name == "" {
		return append(errs, field.Required(path.Child("externalName"), ""))
	}
	errs = append(errs, rule.Subdomain(name, path.Child("externalName"))...)
	return errs
}

func validateClusterIPs(svc *corev1.Service, path *field.Path) field.ErrorList {
	if !hasClusterIP(svc) {
		return nil
	}
	spec, ips := &svc.Spec, path.Child("clusterIPs")
	errs := validateFirstIP(spec, ips)
	errs = append(errs, validateFamilies(spec, path)...)
	var bad field.ErrorList
	for i, ip := range spec.ClusterIPs {
		switch {
		case i == 0 && ip == corev1.ClusterIPNone && len(spec.ClusterIPs) > 1:
			bad = append(bad, field.Invalid(ips, spec.ClusterIPs, "'None' must be the first and only value"))
		case i > 0 || ip != corev1.ClusterIPNone:
			bad = append(bad, rule.IP(ip, ips.Index(i))...)
		}
	}
	errs = append(errs, bad...)
	if len(spec.ClusterIPs) > 2 {
		errs = append(errs, field.Invalid(ips, spec.ClusterIPs, "may only hold up to 2 values"))
	}
	if len(bad) > 0 {
		return errs // which family each is of is not known
	}
	if two, _ := netutils.IsDualStackIPStrings(spec.ClusterIPs); len(spec.ClusterIPs) > 1 && !two {
		errs = append(errs, field.Invalid(ips, spec.ClusterIPs, "may specify no more than one IP for each IP family"))
	}
	return append(errs, validateIPsOfFamilies(spec, ips)...)
}

// validateFirstIP: the single address and the list say the same.
func validateFirstIP(spec *corev1.ServiceSpec, ips *field.Path) field.ErrorList {
	switch {
	case spec.ClusterIP != "" && len(spec.ClusterIPs) == 0:
		return field.ErrorList{field.Required(ips, "")}
	case spec.ClusterIP == "" && len(spec.ClusterIPs) > 0:
		return field.ErrorList{field.Invalid(ips, spec.ClusterIPs, "must be empty when `clusterIP` is not specified")}
	case spec.ClusterIP != "" && spec.ClusterIPs[0] != spec.ClusterIP:
		return field.ErrorList{field.Invalid(ips, spec.ClusterIPs, "first value must match `clusterIP`")}
	}
	return nil
}

func validateIPsOfFamilies(spec *corev1.ServiceSpec, ips *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, ip := range spec.ClusterIPs {
		if ip == corev1.ClusterIPNone || i >= len(spec.IPFamilies) {
			break
		}
		six, family := netutils.IsIPv6String(ip), spec.IPFamilies[i]
		if family == corev1.IPv4Protocol && six || family == corev1.IPv6Protocol && !six {
			errs = append(errs, field.Invalid(ips.Index(i), ip, fmt.Sprintf("expected an %s value as indicated by `ipFamilies[%d]`", family, i)))
		}
	}
	return errs
}

func validateFamilies(spec *corev1.ServiceSpec, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, family := range spec.IPFamilies {
		at := path.Child("ipFamilies").Index(i)
		errs = append(errs, rule.OneOf(family, ipFamilies, at)...)
		if slices.Contains(spec.IPFamilies[:i], family) {
			errs = append(errs, field.Duplicate(at, family))
		}
	}
	policies := []corev1.IPFamilyPolicy{
		corev1.IPFamilyPolicyPreferDualStack,
		corev1.IPFamilyPolicyRequireDualStack,
		corev1.IPFamilyPolicySingleStack,
	}
	return append(errs, rule.OptionalOneOf(spec.IPFamilyPolicy, policies, path.Child("ipFamilyPolicy"))...)
}

// validateExternalIPs refuses addresses that would capture traffic of the nodes themselves.
func validateExternalIPs(ips []string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, ip := range ips {
		if bad := rule.IP(ip, path.Index(i)); len(bad) > 0 {
			errs = append(errs, bad...)
			continue
		}
		errs = append(errs, rule.NonSpecialIP(ip, path.Index(i))...)
	}
	return errs
}

// validateSourceRanges judges from where a load balancer may be used: the field, or else the annotation that is older. Spaces around
// a range are allowed, since lists in annotations have some. Upstream's path begins in upper case.
func validateSourceRanges(svc, old *corev1.Service, path *field.Path) field.ErrorList {
	ranges, stored := trimmed(svc.Spec.LoadBalancerSourceRanges), trimmed(old.Spec.LoadBalancerSourceRanges)
	at := path.Index
	if len(ranges) == 0 {
		text, set := svc.Annotations[corev1.AnnotationLoadBalancerSourceRangesKey]
		if !set {
			return nil
		}
		path = field.NewPath("metadata", "annotations").Key(corev1.AnnotationLoadBalancerSourceRangesKey)
		at = func(int) *field.Path { return path }
		if was, kept := old.Annotations[corev1.AnnotationLoadBalancerSourceRangesKey]; (!kept || was != text) && strings.TrimSpace(text) != "" {
			ranges = trimmed(strings.Split(text, ","))
		}
	}
	var errs field.ErrorList
	if svc.Spec.Type != corev1.ServiceTypeLoadBalancer {
		errs = append(errs, field.Forbidden(path, "may only be used when `type` is 'LoadBalancer'"))
	}
	for i, value := range ranges {
		errs = append(errs, utilvalidation.IsValidCIDRForLegacyField(at(i), value, true, stored)...)
	}
	return errs
}

func trimmed(texts []string) []string {
	out := make([]string, len(texts))
	for i, text := range texts {
		out[i] = strings.TrimSpace(text)
	}
	return out
}

func validateLoadBalancerFields(svc *corev1.Service, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	spec := &svc.Spec
	if spec.Type == corev1.ServiceTypeLoadBalancer {
		if spec.AllocateLoadBalancerNodePorts == nil {
			errs = append(errs, field.Required(path.Child("allocateLoadBalancerNodePorts"), ""))
		}
		if spec.LoadBalancerClass != nil {
			errs = append(errs, rule.QualifiedName(*spec.LoadBalancerClass, path.Child("loadBalancerClass"))...)
		}
		return errs
	}
	if spec.AllocateLoadBalancerNodePorts != nil {
		errs = append(errs, field.Forbidden(path.Child("allocateLoadBalancerNodePorts"), "may only be used when `type` is 'LoadBalancer'"))
	}
	if spec.LoadBalancerClass != nil {
		errs = append(errs, field.Forbidden(path.Child("loadBalancerClass"), "may only be used when `type` is 'LoadBalancer'"))
	}
	return errs
}

func validateTrafficPolicies(svc *corev1.Service, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	spec := &svc.Spec
	external := path.Child("externalTrafficPolicy")
	switch reachable := externallyReachable(svc); {
	case reachable && spec.ExternalTrafficPolicy == "":
		errs = append(errs, field.Required(external, ""))
	case reachable:
		errs = append(errs, rule.OneOf(spec.ExternalTrafficPolicy, externalPolicies, external)...)
	case spec.ExternalTrafficPolicy != "":
		errs = append(errs, field.Invalid(external, spec.ExternalTrafficPolicy, "may only be set for externally-accessible services"))
	}
	if spec.HealthCheckNodePort != 0 && !hasHealthPort(svc) {
		errs = append(errs, field.Invalid(path.Child("healthCheckNodePort"), spec.HealthCheckNodePort,
			"may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"))
	}
	if hasClusterIP(svc) {
		if spec.InternalTrafficPolicy == nil {
			errs = append(errs, field.Required(path.Child("internalTrafficPolicy"), ""))
		} else {
			errs = append(errs, rule.OneOf(*spec.InternalTrafficPolicy, internalPolicies, path.Child("internalTrafficPolicy"))...)
		}
	}
	if spec.TrafficDistribution != nil {
		errs = append(errs, rule.OneOf(*spec.TrafficDistribution, distributions, path.Child("trafficDistribution"))...)
	}
	return errs
}

// validateFamiliesUpdate: the primary family stays, and the order of two; families of a headless Service may change.
func validateFamiliesUpdate(svc, old *corev1.Service, path *field.Path) field.ErrorList {
	none := func(s *corev1.Service) bool { return s.Spec.ClusterIP == corev1.ClusterIPNone }
	if !hasClusterIP(svc) || !hasClusterIP(old) || none(svc) || none(old) {
		return nil
	}
	var errs field.ErrorList
	for i, was := range old.Spec.IPFamilies {
		if i < len(svc.Spec.IPFamilies) && svc.Spec.IPFamilies[i] != was {
			errs = append(errs, field.Invalid(path.Index(0), svc.Spec.IPFamilies, "may not change once set"))
		}
	}
	return errs
}

// validateServiceUpdate: an address once given stays, unless the Service becomes or
// was a mere name; addresses.Allocate judges how a second one comes and goes.
func validateServiceUpdate(svc, old *corev1.Service) field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("spec")
	if hasClusterIP(svc) && hasClusterIP(old) && old.Spec.ClusterIP != "" {
		for i, was := range old.Spec.ClusterIPs {
			if i < len(svc.Spec.ClusterIPs) && svc.Spec.ClusterIPs[i] != was {
				errs = append(errs, field.Invalid(path.Child("clusterIPs").Index(i), svc.Spec.ClusterIPs, "may not change once set"))
			}
		}
	}
	errs = append(errs, validateFamiliesUpdate(svc, old, path.Child("ipFamilies"))...)
	if svc.Spec.Type == corev1.ServiceTypeLoadBalancer && old.Spec.Type == corev1.ServiceTypeLoadBalancer {
		if ptr.Deref(svc.Spec.LoadBalancerClass, "") != ptr.Deref(old.Spec.LoadBalancerClass, "") {
			errs = append(errs, field.Invalid(path.Child("loadBalancerClass"), svc.Spec.LoadBalancerClass, "may not change once set"))
		}
	}
	if hasHealthPort(svc) && hasHealthPort(old) {
		errs = append(
			errs,
			validation.ValidateImmutableField(
				svc.Spec.HealthCheckNodePort,
				old.Spec.HealthCheckNodePort,
				path.Child("healthCheckNodePort"),
			)...)
	}
	return append(errs, validateService(svc, old)...)
}

func validateServiceStatus(svc, _ *corev1.Service) field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("status", "loadBalancer", "ingress")
	ingresses := svc.Status.LoadBalancer.Ingress
	if svc.Spec.Type != corev1.ServiceTypeLoadBalancer && len(ingresses) > 0 {
		return field.ErrorList{field.Forbidden(path, "may only be used when `spec.type` is 'LoadBalancer'")}
	}
	for i, ingress := range ingresses {
		if ingress.IP != "" {
			errs = append(errs, rule.IP(ingress.IP, path.Index(i).Child("ip"))...)
		}
		if ingress.Hostname != "" {
			errs = append(errs, rule.Subdomain(ingress.Hostname, path.Index(i).Child("hostname"))...)
		}
	}
	return errs
}
