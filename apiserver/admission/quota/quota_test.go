package quota

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	kind "github.com/setpoint-io/setpoint/apiserver/resource"
)

func list(pairs ...string) corev1.ResourceList {
	l := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		l[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return l
}

func pod(edit func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Name: "c", Resources: corev1.ResourceRequirements{Requests: list("cpu", "100m", "example.com/gpu", "2"), Limits: list("cpu", "200m", "memory", "1Gi")},
	}}}}
	if edit != nil {
		edit(p)
	}
	return p
}

func claim(size, allocated, class string) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: &class}}
	c.Spec.Resources.Requests = list("storage", size)
	if allocated != "" {
		c.Status.AllocatedResources = list("storage", allocated)
	}
	return c
}

func service(spec corev1.ServiceSpec) *corev1.Service {
	spec.Ports = []corev1.ServicePort{{Port: 1, NodePort: 30001}, {Port: 2}}
	return &corev1.Service{Spec: spec}
}

func TestUsage(t *testing.T) {
	for name, c := range map[string]struct {
		gr   string
		obj  kind.Object
		want string
	}{
		"config map": {"configmaps", &corev1.ConfigMap{}, "configmaps=1,count/configmaps=1"},
		"pod": {"pods", pod(nil),
			"count/pods=1,cpu=100m,limits.cpu=200m,limits.memory=1Gi,pods=1,requests.cpu=100m,requests.example.com/gpu=2"},
		"pod that has ended":     {"pods", pod(func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }), "count/pods=1"},
		"claim":                  {"persistentvolumeclaims", claim("1500m", "", ""), "count/persistentvolumeclaims=1,persistentvolumeclaims=1,requests.storage=2"},
		"claim of a class":       {"persistentvolumeclaims", claim("1Gi", "", "gold"), "count/persistentvolumeclaims=1,gold.storageclass.storage.k8s.io/persistentvolumeclaims=1,gold.storageclass.storage.k8s.io/requests.storage=1Gi,persistentvolumeclaims=1,requests.storage=1Gi"},
		"claim that has shrunk":  {"persistentvolumeclaims", claim("1Gi", "2Gi", ""), "count/persistentvolumeclaims=1,persistentvolumeclaims=1,requests.storage=2Gi"},
		"service":                {"services", service(corev1.ServiceSpec{}), "count/services=1,services=1,services.nodeports=0"},
		"node ports":             {"services", service(corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort}), "count/services=1,services=1,services.nodeports=2"},
		"load balancer":          {"services", service(corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer}), "count/services=1,services=1,services.loadbalancers=1,services.nodeports=2"},
		"balancer without ports": {"services", service(corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, AllocateLoadBalancerNodePorts: new(false)}), "count/services=1,services=1,services.loadbalancers=1,services.nodeports=1"},
		"devices": {"resourceclaims.resource.k8s.io", &resourcev1.ResourceClaim{Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{
			{Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gold", AllocationMode: "ExactCount", Count: 2}},
			{Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "gold", AllocationMode: "ExactCount", Count: 1}},
			{FirstAvailable: []resourcev1.DeviceSubRequest{
				{DeviceClassName: "tin", AllocationMode: "ExactCount", Count: 5}, {DeviceClassName: "tin", AllocationMode: "ExactCount", Count: 4},
				{DeviceClassName: "lead", AllocationMode: "All"}}},
		}}}}, "count/resourceclaims.resource.k8s.io=1,gold.deviceclass.resource.k8s.io/devices=3,lead.deviceclass.resource.k8s.io/devices=32,tin.deviceclass.resource.k8s.io/devices=5"},
	} {
		t.Run(name, func(t *testing.T) {
			gr := schema.ParseGroupResource(c.gr)
			m := meterOf(&kind.Any{GroupVersionKind: schema.GroupVersionKind{Group: gr.Group, Version: "v1"}, Plural: gr.Resource})
			if got := show(m.usage(&corev1.ResourceQuota{}, c.obj)); got != c.want {
				t.Errorf("usage = %s\nwant    %s", got, c.want)
			}
		})
	}
}

func TestScopes(t *testing.T) {
	idle := pod(func(p *corev1.Pod) { p.Spec.Containers[0].Resources = corev1.ResourceRequirements{} })
	short := pod(func(p *corev1.Pod) { p.Spec.ActiveDeadlineSeconds = new(int64(1)) })
	gold := pod(func(p *corev1.Pod) { p.Spec.PriorityClassName = "gold" })
	far := pod(func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{Namespaces: []string{"x"}}}}}
	})
	for name, c := range map[string]struct {
		scope  corev1.ResourceQuotaScope
		in, no kind.Object
	}{
		"terminating":     {corev1.ResourceQuotaScopeTerminating, short, pod(nil)},
		"not terminating": {corev1.ResourceQuotaScopeNotTerminating, pod(nil), short},
		"best effort":     {corev1.ResourceQuotaScopeBestEffort, idle, pod(nil)},
		"not best effort": {corev1.ResourceQuotaScopeNotBestEffort, pod(nil), idle},
		"a class":         {corev1.ResourceQuotaScopePriorityClass, gold, pod(nil)},
		"other affinity":  {corev1.ResourceQuotaScopeCrossNamespacePodAffinity, far, pod(nil)},
		"only pods":       {corev1.ResourceQuotaScopeNotBestEffort, pod(nil), &corev1.ConfigMap{}},
	} {
		q := &corev1.ResourceQuota{Spec: corev1.ResourceQuotaSpec{Scopes: []corev1.ResourceQuotaScope{c.scope}}}
		if !inScopes(q, c.in) || inScopes(q, c.no) {
			t.Errorf("%s: %v and %v, want true and false", name, inScopes(q, c.in), inScopes(q, c.no))
		}
	}
	for op, want := range map[corev1.ScopeSelectorOperator]bool{
		corev1.ScopeSelectorOpIn: true, corev1.ScopeSelectorOpNotIn: false, corev1.ScopeSelectorOpExists: true, corev1.ScopeSelectorOpDoesNotExist: false,
	} {
		q := &corev1.ResourceQuota{Spec: corev1.ResourceQuotaSpec{ScopeSelector: &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{
			{ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: op, Values: []string{"gold"}},
		}}}}
		if inScopes(q, gold) != want || inScopes(q, pod(nil)) == want {
			t.Errorf("%s: gold %v, none %v", op, inScopes(q, gold), inScopes(q, pod(nil)))
		}
	}
}

func TestNamesOfAKind(t *testing.T) {
	names := []corev1.ResourceName{"pods", "cpu", "requests.example.com/gpu", "requests.storage", "services.nodeports", "hugepages-2Mi",
		"gold.storageclass.storage.k8s.io/requests.storage", "count/pods", "count/deployments.apps", "requests.kubernetes.io/x"}
	for gr, want := range map[schema.GroupResource]string{
		{Resource: "pods"}:                       "[pods cpu requests.example.com/gpu hugepages-2Mi count/pods]",
		{Resource: "services"}:                   "[services.nodeports]",
		{Resource: "persistentvolumeclaims"}:     "[requests.storage gold.storageclass.storage.k8s.io/requests.storage]",
		{Group: "apps", Resource: "deployments"}: "[count/deployments.apps]",
	} {
		m := meterOf(&kind.Any{GroupVersionKind: schema.GroupVersionKind{Group: gr.Group, Version: "v1"}, Plural: gr.Resource})
		if got := sprint(m.limited(names)); got != want {
			t.Errorf("%s: %s, want %s", gr, got, want)
		}
	}
}

func sprint(names []corev1.ResourceName) string {
	text := "["
	for i, n := range names {
		if i > 0 {
			text += " "
		}
		text += string(n)
	}
	return text + "]"
}
