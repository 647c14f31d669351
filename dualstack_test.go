package setpoint_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/setpoint-io/setpoint"
)

// TestTwoFamilies: nodes, pods, Services and their endpoints have addresses of IPv4 and IPv6; the API and DNS have IPv4, as upstream.
func TestTwoFamilies(t *testing.T) {
	_, access := started(t, setpoint.Config{
		SimulatedNodes: 1, PodCIDR: "10.42.0.0/16,fd42::/56", ServiceCIDR: "10.96.0.0/16,fd96::/112", NodeMaskSize6: 72,
	})
	client := kubernetes.NewForConfigOrDie(access)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", Labels: map[string]string{"app": "web"}}}
	pod.Spec.Containers = []corev1.Container{{Name: "c", Image: "i"}}
	until(t, "the pod's namespace to have its account", func() bool {
		_, err := client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{})
		return err == nil
	})
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: corev1.ServiceSpec{
		Selector: pod.Labels, Ports: []corev1.ServicePort{{Port: 80}}, IPFamilyPolicy: new(corev1.IPFamilyPolicyRequireDualStack),
	}}
	service, err := client.CoreV1().Services("default").Create(t.Context(), service, metav1.CreateOptions{})
	if err != nil || len(service.Spec.ClusterIPs) != 2 || !strings.HasPrefix(service.Spec.ClusterIPs[1], "fd96::") {
		t.Fatalf("%+v, %v", service.Spec, err)
	}
	until(t, "the node's ranges", func() bool {
		nodes, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		return err == nil && len(nodes.Items) == 1 && slices.Equal(nodes.Items[0].Spec.PodCIDRs, []string{"10.42.0.0/24", "fd42::/72"})
	})
	until(t, "endpoints of both families", func() bool { return slices.Equal(endpointsOf(t, client, "web"), addressesOf(t, client, "web")) })
	for _, name := range [][2]string{{"default", "kubernetes"}, {"kube-system", "kube-dns"}} {
		until(t, name[1], func() bool {
			s, err := client.CoreV1().Services(name[0]).Get(t.Context(), name[1], metav1.GetOptions{})
			return err == nil && len(s.Spec.ClusterIPs) == 1 && *s.Spec.IPFamilyPolicy == corev1.IPFamilyPolicySingleStack
		})
	}
}

// addressesOf are the pod's two addresses; nil while it has fewer.
func addressesOf(t *testing.T, client kubernetes.Interface, name string) (ips []string) {
	t.Helper()
	pod, err := client.CoreV1().Pods("default").Get(t.Context(), name, metav1.GetOptions{})
	if err != nil || len(pod.Status.PodIPs) != 2 || pod.Status.PodIP != pod.Status.PodIPs[0].IP {
		return nil
	}
	return []string{pod.Status.PodIPs[0].IP, pod.Status.PodIPs[1].IP}
}

// endpointsOf are the addresses in the Service's slices of IPv4 and IPv6, and none before its Endpoints have the first one.
func endpointsOf(t *testing.T, client kubernetes.Interface, name string) (ips []string) {
	t.Helper()
	slices, err := client.DiscoveryV1().EndpointSlices("default").List(t.Context(), metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + name})
	if err != nil {
		return []string{err.Error()}
	}
	for _, family := range []discoveryv1.AddressType{discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6} {
		for _, slice := range slices.Items {
			if slice.AddressType == family && len(slice.Endpoints) == 1 {
				ips = append(ips, slice.Endpoints[0].Addresses...)
			}
		}
	}
	endpoints, err := client.CoreV1().Endpoints("default").Get(t.Context(), name, metav1.GetOptions{})
	if err != nil || len(ips) != 2 || len(endpoints.Subsets) != 1 || endpoints.Subsets[0].Addresses[0].IP != ips[0] {
		return []string{"not yet"}
	}
	return ips
}
