package endpoints

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func TestPlan(t *testing.T) {
	s := service("web", map[string]string{"app": "web"})
	s.Spec.Ports = s.Spec.Ports[:1]
	var pods []*corev1.Pod
	for i := range 1100 {
		pods = append(pods, pod(i, i < 900))
	}
	pods[0].Spec.Hostname, pods[0].Spec.Subdomain = "db-0", "web"
	now := time.Unix(1_000_000, 0)
	e := plan(s, pods, nil, now)
	got := e.Subsets[0]
	if len(e.Subsets) != 1 || len(got.Addresses) != 900 || len(got.NotReadyAddresses) != 100 || e.Annotations[corev1.EndpointsOverCapacity] != "truncated" {
		t.Errorf("%d ready, %d not ready, %v", len(got.Addresses), len(got.NotReadyAddresses), e.Annotations)
	}
	if first := got.Addresses[0]; first.Hostname != "db-0" || *first.NodeName != "n1" || first.TargetRef.Name != "p0" {
		t.Errorf("%+v", first)
	}
	if e.Labels["endpoints.kubernetes.io/managed-by"] != "endpoint-controller" || e.Labels["of"] != "web" || len(e.Labels) != 2 {
		t.Errorf("labels %v", e.Labels)
	}
	if e.Annotations[corev1.EndpointsLastChangeTriggerTime] != "1970-01-12T13:46:40Z" {
		t.Errorf("annotations %v", e.Annotations)
	}
	if again := plan(s, pods, e, time.Time{}); again != nil {
		t.Error("an unchanged Service is written again")
	}
	less := plan(s, pods[:3], e, time.Time{})
	if len(less.Annotations) != 0 || len(less.Subsets[0].Addresses) != 3 {
		t.Errorf("%v, %d addresses", less.Annotations, len(less.Subsets[0].Addresses))
	}
}

func TestHeadlessWithoutPorts(t *testing.T) {
	s := service("web", map[string]string{"app": "web"})
	s.Spec.Ports = nil
	if e := plan(s, []*corev1.Pod{pod(1, true)}, nil, time.Time{}); len(e.Subsets) != 0 {
		t.Errorf("%+v", e.Subsets)
	}
	s.Spec.ClusterIP = corev1.ClusterIPNone
	e := plan(s, []*corev1.Pod{pod(1, true)}, nil, time.Time{})
	if _, headless := e.Labels[corev1.IsHeadlessService]; len(e.Subsets) != 1 || len(e.Subsets[0].Ports) != 0 || !headless {
		t.Errorf("%+v %v", e.Subsets, e.Labels)
	}
}

func TestFamilies(t *testing.T) {
	p := pod(1, true)
	p.Status.PodIPs = append(p.Status.PodIPs, corev1.PodIP{IP: "fd00::1"})
	s := service("web", map[string]string{"app": "web"})
	for family, want := range map[corev1.IPFamily]string{corev1.IPv4Protocol: "10.42.0.1", corev1.IPv6Protocol: "fd00::1"} {
		s.Spec.IPFamilies = []corev1.IPFamily{family}
		if e := plan(s, []*corev1.Pod{p}, nil, time.Time{}); e.Subsets[0].Addresses[0].IP != want {
			t.Errorf("%s: %+v", family, e.Subsets)
		}
	}
}
