package core

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/setpoint-io/setpoint/apiserver/kinds/kindstest"
)

func readService(t *testing.T, text string) *corev1.Service {
	t.Helper()
	svc := &corev1.Service{}
	if err := yaml.UnmarshalStrict([]byte("spec: "+text), svc); err != nil {
		t.Fatal(err)
	}
	defaultService(svc)
	return svc
}

// TestServiceUpdate: clients send back what they read, or leave out what the
// server allocated; both must be accepted.
func TestServiceUpdate(t *testing.T) {
	const (
		clusterIP = `{clusterIP: 10.96.1.1, clusterIPs: [10.96.1.1], ipFamilies: [IPv4], ipFamilyPolicy: SingleStack, ports: [{port: 80}]}`
		nodePort  = `{type: NodePort, clusterIP: 10.96.1.1, clusterIPs: [10.96.1.1], ports: [{port: 80, nodePort: 30080, name: a}, {port: 81, nodePort: 30081, name: b}]}`
		balancer  = `{type: LoadBalancer, clusterIP: 10.96.1.1, clusterIPs: [10.96.1.1], externalTrafficPolicy: Local, healthCheckNodePort: 31000, loadBalancerClass: example.org/x, ports: [{port: 80, nodePort: 30080}]}`
	)
	for name, test := range map[string]struct {
		old, new string
		ip       string
		ports    []int32
		want     []string
	}{
		"address left out":    {clusterIP, `{ports: [{port: 80}]}`, "10.96.1.1", []int32{0}, nil},
		"address changed":     {clusterIP, `{clusterIP: 10.96.1.2, ports: [{port: 80}]}`, "10.96.1.2", []int32{0}, []string{`spec.clusterIPs[0]: Invalid value: ["10.96.1.2"]: may not change once set`}},
		"single changed":      {clusterIP, `{clusterIP: 10.96.1.2, clusterIPs: [10.96.1.1], ports: [{port: 80}]}`, "10.96.1.2", []int32{0}, []string{`spec.clusterIPs[0]: Invalid value: ["10.96.1.2"]: may not change once set`}},
		"made headless":       {clusterIP, `{clusterIP: None, ports: [{port: 80}]}`, "None", []int32{0}, []string{`spec.clusterIPs[0]: Invalid value: ["None"]: may not change once set`}},
		"becomes a name":      {clusterIP, `{type: ExternalName, externalName: a.b, clusterIP: 10.96.1.1, clusterIPs: [10.96.1.1], ipFamilies: [IPv4], ipFamilyPolicy: SingleStack, ports: [{port: 80}]}`, "", []int32{0}, nil},
		"node ports left out": {nodePort, `{type: NodePort, ports: [{port: 81, name: b}, {port: 80, name: a}]}`, "10.96.1.1", []int32{30081, 30080}, nil},
		"node port moved":     {nodePort, `{type: NodePort, ports: [{port: 80, name: a}, {port: 81, name: b, nodePort: 30080}]}`, "10.96.1.1", []int32{0, 30080}, nil},
		"no more node ports":  {nodePort, `{type: ClusterIP, externalTrafficPolicy: Cluster, ports: [{port: 80, nodePort: 30080, name: a}, {port: 81, nodePort: 30081, name: b}]}`, "10.96.1.1", []int32{0, 0}, nil},
		"no more balancer":    {balancer, `{type: ClusterIP, externalTrafficPolicy: Local, healthCheckNodePort: 31000, loadBalancerClass: example.org/x, allocateLoadBalancerNodePorts: true, ports: [{port: 80, nodePort: 30080}]}`, "10.96.1.1", []int32{0}, nil},
		"another balancer": {balancer, `{type: LoadBalancer, externalTrafficPolicy: Local, loadBalancerClass: example.org/y, ports: [{port: 80}]}`, "10.96.1.1", []int32{30080}, []string{
			`spec.loadBalancerClass: Invalid value: "example.org/y": may not change once set`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			old, svc := readService(t, test.old), readService(t, test.new)
			prepareServiceUpdate(svc, old)
			if diff := cmp.Diff(test.want, kindstest.Messages(validateServiceUpdate(svc, old))); diff != "" {
				t.Error("errors (-want +got):\n", diff)
			}
			if svc.Spec.ClusterIP != test.ip {
				t.Errorf("clusterIP = %q, want %q", svc.Spec.ClusterIP, test.ip)
			}
			var ports []int32
			for _, p := range svc.Spec.Ports {
				ports = append(ports, p.NodePort)
			}
			if diff := cmp.Diff(test.ports, ports); diff != "" {
				t.Error("node ports (-want +got):\n", diff)
			}
		})
	}
}

func TestServiceStatusNeedsABalancer(t *testing.T) {
	svc := readService(t, `{ports: [{port: 80}]}`)
	svc.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.1"}}
	want := []string{`status.loadBalancer.ingress: Forbidden: may only be used when ` + "`spec.type`" + ` is 'LoadBalancer'`}
	if diff := cmp.Diff(want, kindstest.Messages(validateServiceStatus(svc, svc))); diff != "" {
		t.Error("(-want +got):\n", diff)
	}
}
