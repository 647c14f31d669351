package core

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/apiserver/kinds/kindstest"
)

// Ranges have no bits of a host, but those that are stored already stay.
func TestRangesOfServices(t *testing.T) {
	const (
		local    = `{clusterIP: 10.96.1.1, clusterIPs: [10.96.1.1], ports: [{port: 80}]}`
		plain    = `{type: LoadBalancer, clusterIP: 10.96.1.1, clusterIPs: [10.96.1.1], allocateLoadBalancerNodePorts: true, ports: [{port: 80}]}`
		ranges   = `{type: LoadBalancer, clusterIP: 10.96.1.1, clusterIPs: [10.96.1.1], allocateLoadBalancerNodePorts: true, ports: [{port: 80}], loadBalancerSourceRanges: ["10.1.2.3/8", " 10.0.0.0/8 "]}`
		inLocal  = `{clusterIP: 10.96.1.1, clusterIPs: [10.96.1.1], ports: [{port: 80}], loadBalancerSourceRanges: ["10.0.0.0/8"]}`
		hostBits = `Invalid value: "10.1.2.3/8": must not have bits set beyond the prefix length`
		atText   = `metadata.annotations[service.beta.kubernetes.io/load-balancer-source-ranges]: `
		onlyFor  = "Forbidden: may only be used when `type` is 'LoadBalancer'"
	)
	for name, test := range map[string]struct {
		spec, text string
		stored     *corev1.Service
		want       []string
	}{
		"field":                       {ranges, "", nil, []string{`spec.LoadBalancerSourceRanges[0]: ` + hostBits}},
		"field, stored":               {ranges, "", readService(t, ranges), nil},
		"field of another type":       {inLocal, "", nil, []string{"spec.LoadBalancerSourceRanges: " + onlyFor}},
		"annotation":                  {plain, " 10.0.0.0/8, 10.1.2.3/8", nil, []string{atText + hostBits}},
		"annotation, stored":          {plain, "10.1.2.3/8", annotated(readService(t, plain), "10.1.2.3/8"), nil},
		"annotation, another stored":  {plain, "10.1.2.3/8", annotated(readService(t, plain), "10.1.2.3/9"), []string{atText + hostBits}},
		"annotation of another type":  {local, "10.0.0.0/8", nil, []string{atText + onlyFor}},
		"annotation beside the field": {ranges, "nothing", readService(t, ranges), nil},
		"empty annotation":            {plain, " ", nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			svc, old := annotated(readService(t, test.spec), test.text), test.stored
			if old == nil {
				old = &corev1.Service{}
			}
			if diff := cmp.Diff(test.want, kindstest.Messages(validateService(svc, old))); diff != "" {
				t.Error("(-want +got):\n", diff)
			}
		})
	}
}

func annotated(svc *corev1.Service, ranges string) *corev1.Service {
	if ranges != "" {
		svc.Annotations = map[string]string{corev1.AnnotationLoadBalancerSourceRangesKey: ranges}
	}
	return svc
}

func TestRangesOfNodes(t *testing.T) {
	node := &corev1.Node{Spec: corev1.NodeSpec{PodCIDR: "10.42.1.1/24", PodCIDRs: []string{"10.42.1.1/24"}}}
	want := []string{`spec.podCIDRs[0]: Invalid value: "10.42.1.1/24": must not have bits set beyond the prefix length`}
	if diff := cmp.Diff(want, kindstest.Messages(validateNodeCreate(node))); diff != "" {
		t.Error("new (-want +got):\n", diff)
	}
	tainted := node.DeepCopy()
	tainted.Spec.Taints = []corev1.Taint{{Key: "a", Effect: corev1.TaintEffectNoSchedule}}
	if errs := validateNodeUpdate(tainted, node); len(errs) > 0 {
		t.Errorf("stored: %v", errs)
	}
	if errs := validateNodeUpdate(node, &corev1.Node{}); len(errs) == 0 {
		t.Error("given to a node that had none: not refused")
	}
}
