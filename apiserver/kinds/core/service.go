package core

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/setpoint-io/setpoint/apiserver/kinds/column"
	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
	"github.com/setpoint-io/setpoint/apiserver/resource"
)

// loadBalancerWidth is the width of EXTERNAL-IP without -o wide.
const loadBalancerWidth = 16

func services() resource.Kind[*corev1.Service] {
	return resource.Kind[*corev1.Service]{
		GroupVersionKind:    corev1.SchemeGroupVersion.WithKind("Service"),
		Plural:              "services",
		ShortNames:          []string{"svc"},
		Categories:          []string{"all"},
		New:                 func() *corev1.Service { return &corev1.Service{} },
		NewList:             func() runtime.Object { return &corev1.ServiceList{} },
		ValidateName:        validation.NameIsDNSLabel, // since 1.37 it may begin with a digit
		Default:             defaultService,
		PrepareCreate:       dropForeignFields,
		PrepareUpdate:       prepareServiceUpdate,
		Validate:            validateServiceCreate,
		ValidateUpdate:      validateServiceUpdate,
		ValidateStatus:      validateServiceStatus,
		Warnings:            serviceWarnings,
		Spec:                func(svc *corev1.Service) any { return &svc.Spec },
		Status:              func(svc *corev1.Service) any { return &svc.Status },
		AllowCreateOnUpdate: true,
		ReturnDeleted:       true,
		Columns:             serviceColumns(),
		Subresources:        []resource.Subresource{proxied("ServiceProxyOptions")},
		Fields: func(svc *corev1.Service) fields.Set {
			return fields.Set{"spec.clusterIP": svc.Spec.ClusterIP, "spec.type": string(svc.Spec.Type)}
		},
	}
}

func defaultService(svc *corev1.Service) {
	spec := &svc.Spec
	rule.Default(&spec.SessionAffinity, corev1.ServiceAffinityNone)
	if spec.SessionAffinity == corev1.ServiceAffinityNone {
		spec.SessionAffinityConfig = nil
	}
	if spec.SessionAffinity == corev1.ServiceAffinityClientIP {
		rule.DefaultPointer(&spec.SessionAffinityConfig, corev1.SessionAffinityConfig{})
		rule.DefaultPointer(&spec.SessionAffinityConfig.ClientIP, corev1.ClientIPConfig{})
		rule.DefaultPointer(&spec.SessionAffinityConfig.ClientIP.TimeoutSeconds, corev1.DefaultClientIPServiceAffinitySeconds)
	}
	rule.Default(&spec.Type, corev1.ServiceTypeClusterIP)
	for i := range spec.Ports {
		defaultServicePort(&spec.Ports[i])
	}
	if externallyReachable(svc) {
		rule.Default(&spec.ExternalTrafficPolicy, corev1.ServiceExternalTrafficPolicyCluster)
	}
	if spec.Type != corev1.ServiceTypeExternalName {
		rule.DefaultPointer(&spec.InternalTrafficPolicy, corev1.ServiceInternalTrafficPolicyCluster)
	}
	if spec.Type == corev1.ServiceTypeLoadBalancer {
		rule.DefaultPointer(&spec.AllocateLoadBalancerNodePorts, true)
		for i := range svc.Status.LoadBalancer.Ingress {
			if ingress := &svc.Status.LoadBalancer.Ingress[i]; ingress.IP != "" {
				rule.DefaultPointer(&ingress.IPMode, corev1.LoadBalancerIPModeVIP)
			}
		}
	}
}

func defaultServicePort(port *corev1.ServicePort) {
	rule.Default(&port.Protocol, corev1.ProtocolTCP)
	if port.TargetPort == intstr.FromInt32(0) || port.TargetPort == intstr.FromString("") {
		port.TargetPort = intstr.FromInt32(port.Port)
	}
}

// externallyReachable: traffic from outside can arrive, so its policy matters.
func externallyReachable(svc *corev1.Service) bool {
	return hasNodePorts(svc) || (svc.Spec.Type == corev1.ServiceTypeClusterIP && len(svc.Spec.ExternalIPs) > 0)
}

func hasNodePorts(svc *corev1.Service) bool {
	return svc.Spec.Type == corev1.ServiceTypeNodePort || svc.Spec.Type == corev1.ServiceTypeLoadBalancer
}

func hasClusterIP(svc *corev1.Service) bool { return svc.Spec.Type != corev1.ServiceTypeExternalName }

// hasHealthPort: the load balancer asks this node port which nodes have endpoints.
func hasHealthPort(svc *corev1.Service) bool {
	return svc.Spec.Type == corev1.ServiceTypeLoadBalancer &&
		svc.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal
}

// prepareServiceUpdate keeps what was allocated when the client leaves it out, and
// lets go of what the new type has no use for.
func prepareServiceUpdate(svc, old *corev1.Service) {
	followClusterIP(svc, old)
	keepAllocated(svc, old)
	dropUnchanged(svc, old)
	dropForeignFields(svc)
}

// followClusterIP: a client that knows the single address only changes it alone.
func followClusterIP(svc, old *corev1.Service) {
	if svc.Spec.ClusterIP != old.Spec.ClusterIP && slices.Equal(svc.Spec.ClusterIPs, old.Spec.ClusterIPs) {
		svc.Spec.ClusterIPs = nil
	}
}

func keepAllocated(svc, old *corev1.Service) {
	spec, was := &svc.Spec, &old.Spec
	if hasClusterIP(svc) && hasClusterIP(old) {
		rule.Default(&spec.ClusterIP, was.ClusterIP)
		if len(spec.ClusterIPs) == 0 && spec.ClusterIP == was.ClusterIP {
			spec.ClusterIPs = was.ClusterIPs
		}
	}
	if hasNodePorts(svc) && hasNodePorts(old) {
		keepNodePorts(spec.Ports, was.Ports)
	}
	if hasHealthPort(svc) && hasHealthPort(old) {
		rule.Default(&spec.HealthCheckNodePort, was.HealthCheckNodePort)
	}
}

// keepNodePorts finds the old node port of a port by protocol and number, unless
// the client already gave it to another port.
func keepNodePorts(ports, old []corev1.ServicePort) {
	type key struct {
		protocol corev1.Protocol
		port     int32
	}
	held, used := map[key]int32{}, map[key]bool{}
	for _, p := range old {
		held[key{p.Protocol, p.Port}] = p.NodePort
	}
	for _, p := range ports {
		used[key{p.Protocol, p.NodePort}] = p.NodePort != 0
	}
	for i := range ports {
		p := &ports[i]
		if was := held[key{p.Protocol, p.Port}]; p.NodePort == 0 && was != 0 && !used[key{p.Protocol, was}] {
			p.NodePort = was
			used[key{p.Protocol, was}] = true
		}
	}
}

// dropUnchanged removes values that a client sent back as it got them though the
// new type forbids them: a change of only the type must succeed.
func dropUnchanged(svc, old *corev1.Service) {
	spec, was := &svc.Spec, &old.Spec
	if hasClusterIP(old) && !hasClusterIP(svc) {
		dropFamilies(spec, was)
	}
	if hasNodePorts(old) && !hasNodePorts(svc) {
		for i := range spec.Ports {
			if i < len(was.Ports) && spec.Ports[i].NodePort == was.Ports[i].NodePort {
				spec.Ports[i].NodePort = 0
			}
		}
	}
	if hasHealthPort(old) && !hasHealthPort(svc) && spec.HealthCheckNodePort == was.HealthCheckNodePort {
		spec.HealthCheckNodePort = 0
	}
	balanced, wasBalanced := spec.Type == corev1.ServiceTypeLoadBalancer, was.Type == corev1.ServiceTypeLoadBalancer
	if wasBalanced && !balanced {
		spec.AllocateLoadBalancerNodePorts, spec.LoadBalancerClass = nil, nil
	}
	if externallyReachable(old) && !externallyReachable(svc) && spec.ExternalTrafficPolicy == was.ExternalTrafficPolicy {
		spec.ExternalTrafficPolicy = ""
	}
}

func dropFamilies(spec, was *corev1.ServiceSpec) {
	if spec.ClusterIP == was.ClusterIP && (len(spec.ClusterIPs) == 0 || slices.Equal(spec.ClusterIPs, was.ClusterIPs)) {
		spec.ClusterIP, spec.ClusterIPs = "", nil
	}
	if slices.Equal(spec.IPFamilies, was.IPFamilies) {
		spec.IPFamilies = nil
	}
	if ptr.Equal(spec.IPFamilyPolicy, was.IPFamilyPolicy) {
		spec.IPFamilyPolicy = nil
	}
}

// dropForeignFields clears what means nothing without a cluster address, and makes
// the list of an old client's single address. A client that knows the list gives both.
func dropForeignFields(svc *corev1.Service) {
	if !hasClusterIP(svc) {
		svc.Spec.InternalTrafficPolicy = nil
		return
	}
	if svc.Spec.ClusterIP != "" && len(svc.Spec.ClusterIPs) == 0 {
		svc.Spec.ClusterIPs = []string{svc.Spec.ClusterIP}
	}
}

func serviceColumns() []resource.Column[*corev1.Service] {
	doc := corev1.ServiceSpec{}.SwaggerDoc()
	return []resource.Column[*corev1.Service]{
		column.Name[*corev1.Service](),
		column.Text("Type", doc["type"], 0, func(svc *corev1.Service) string { return string(svc.Spec.Type) }),
		column.Text("Cluster-IP", doc["clusterIP"], 0, clusterIPCell),
		column.Text("External-IP", doc["externalIPs"], 0, externalIPCell),
		column.Text("Port(s)", doc["ports"], 0, func(svc *corev1.Service) string { return portsCell(svc.Spec.Ports) }),
		column.Age[*corev1.Service](),
		column.Text("Selector", doc["selector"], 1, func(svc *corev1.Service) string { return labels.FormatLabels(svc.Spec.Selector) }),
	}
}

func clusterIPCell(svc *corev1.Service) string {
	if len(svc.Spec.ClusterIPs) > 0 {
		return svc.Spec.ClusterIPs[0]
	}
	return column.None
}

func externalIPCell(svc *corev1.Service) string {
	switch svc.Spec.Type {
	case corev1.ServiceTypeExternalName:
		return svc.Spec.ExternalName
	case corev1.ServiceTypeLoadBalancer:
		return loadBalancerCell(svc)
	}
	return column.OrNone(strings.Join(svc.Spec.ExternalIPs, ","))
}

// loadBalancerCell lists the balancer's addresses, then the external ones.
func loadBalancerCell(svc *corev1.Service) string {
	var addresses []string
	for _, ingress := range svc.Status.LoadBalancer.Ingress {
		switch {
		case ingress.IP != "":
			addresses = append(addresses, ingress.IP)
		case ingress.Hostname != "":
			addresses = append(addresses, ingress.Hostname)
		}
	}
	text := strings.Join(addresses, ",")
	if len(text) > loadBalancerWidth {
		text = text[:loadBalancerWidth-3] + "..."
	}
	if len(svc.Spec.ExternalIPs) > 0 {
		text = strings.Trim(text+","+strings.Join(svc.Spec.ExternalIPs, ","), ",")
	}
	if text == "" {
		return "<pending>"
	}
	return text
}

func portsCell(ports []corev1.ServicePort) string {
	pieces := make([]string, len(ports))
	for i, p := range ports {
		pieces[i] = fmt.Sprintf("%d/%s", p.Port, p.Protocol)
		if p.NodePort > 0 {
			pieces[i] = fmt.Sprintf("%d:%d/%s", p.Port, p.NodePort, p.Protocol)
		}
	}
	return column.OrNone(strings.Join(pieces, ","))
}
