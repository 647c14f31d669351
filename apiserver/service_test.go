package apiserver

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func svcBody(name, spec string) string {
	return `{"metadata":{"name":"` + name + `"},"spec":{"ports":[{"name":"a","port":80}]` + spec + `}}`
}

// TestServicesGetDifferentAddresses creates many at once.
func TestServicesGetDifferentAddresses(t *testing.T) {
	_, client := newServer(t)
	const many = 50
	var mu sync.Mutex
	held := map[string]string{}
	var wg sync.WaitGroup
	for i := range many {
		wg.Go(func() {
			service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("s", i)}, Spec: corev1.ServiceSpec{
				Type: corev1.ServiceTypeNodePort, Ports: []corev1.ServicePort{{Port: 80}}}}
			made, err := client.CoreV1().Services("default").Create(t.Context(), service, metav1.CreateOptions{})
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			for _, value := range []string{made.Spec.ClusterIP, fmt.Sprint(made.Spec.Ports[0].NodePort)} {
				if other := held[value]; other != "" {
					t.Errorf("%s and %s both hold %s", made.Name, other, value)
				}
				held[value] = made.Name
			}
		})
	}
	wg.Wait()
	if len(held) != 2*many {
		t.Errorf("%d values held", len(held))
	}
}

// TestOneServiceWinsAnAddress asks for the same address many times at once.
func TestOneServiceWinsAnAddress(t *testing.T) {
	server, _ := newServer(t)
	codes := map[int]int{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i := range 10 {
		wg.Go(func() {
			got := call{method: "POST", path: svcPath, body: svcBody(fmt.Sprint("s", i), `,"clusterIP":"10.96.7.7"`)}.do(t, server)
			mu.Lock()
			defer mu.Unlock()
			codes[got.code]++
		})
	}
	wg.Wait()
	if codes[201] != 1 || codes[422] != 9 {
		t.Errorf("codes = %v", codes)
	}
}

func TestTakenAddressesAndPorts(t *testing.T) {
	server, _ := newServer(t)
	api := mustDo[corev1.Service](t, server, call{method: "POST", path: svcPath, body: svcBody("kubernetes", `,"clusterIP":"10.96.0.1"`)})
	if api.Spec.ClusterIP != "10.96.0.1" || api.Spec.ClusterIPs[0] != "10.96.0.1" {
		t.Errorf("api = %+v", api.Spec)
	}
	mustDo[corev1.Service](t, server, call{method: "POST", path: svcPath, body: `{"metadata":{"name":"n"},"spec":{"type":"NodePort","ports":[{"port":80,"nodePort":30080}]}}`})
	for name, c := range map[string]struct{ body, want string }{
		"address": {svcBody("x", `,"clusterIP":"10.96.0.1"`), `Service "x" is invalid: spec.clusterIPs: Invalid value: ["10.96.0.1"]: failed to allocate IP 10.96.0.1: provided IP is already allocated`},
		"range":   {svcBody("x", `,"clusterIP":"192.0.2.1"`), `Service "x" is invalid: spec.clusterIPs: Invalid value: ["192.0.2.1"]: failed to allocate IP 192.0.2.1: the provided network does not match the current range`},
		"port":    {`{"metadata":{"name":"x"},"spec":{"type":"NodePort","ports":[{"port":80,"nodePort":30080}]}}`, `Service "x" is invalid: spec.ports[0].nodePort: Invalid value: 30080: provided port is already allocated`},
		"ports":   {`{"metadata":{"name":"x"},"spec":{"type":"NodePort","ports":[{"port":80,"nodePort":80}]}}`, `Service "x" is invalid: spec.ports[0].nodePort: Invalid value: 80: provided port is not in the valid range. The range of valid ports is 30000-32767`},
	} {
		refusal{code: 422, reason: metav1.StatusReasonInvalid, kind: "Service", name: "x", messageHas: c.want}.
			check(t, name, call{method: "POST", path: svcPath, body: c.body}.do(t, server))
	}
}

// TestAddressesComeBack: whatever a Service lets go of can be taken by the next.
func TestAddressesComeBack(t *testing.T) {
	for name, letGo := range map[string]call{
		"deleted":       {method: "DELETE", path: svcPath + "/a"},
		"external name": {method: "PATCH", path: svcPath + "/a", contentType: string(types.MergePatchType), body: `{"spec":{"type":"ExternalName","externalName":"example.org"}}`},
	} {
		server, _ := newServer(t)
		body := func(name string) string {
			return `{"metadata":{"name":"` + name + `"},"spec":{"type":"NodePort","clusterIP":"10.96.3.3","ports":[{"port":80,"nodePort":30080}]}}`
		}
		mustDo[corev1.Service](t, server, call{method: "POST", path: svcPath, body: body("a")})
		if got := (call{method: "POST", path: svcPath, body: body("b")}).do(t, server); got.code != 422 {
			t.Errorf("%s: held, but %d %s", name, got.code, got.body)
		}
		if got := letGo.do(t, server); got.code != 200 {
			t.Errorf("%s: %d %s", name, got.code, got.body)
		}
		if got := (call{method: "POST", path: svcPath, body: body("b")}).do(t, server); got.code != 201 {
			t.Errorf("%s: let go, but %d %s", name, got.code, got.body)
		}
	}
}

func TestUpdatesKeepAddresses(t *testing.T) {
	server, _ := newServer(t)
	made := mustDo[corev1.Service](t, server, call{method: "POST", path: svcPath, body: svcBody("a", `,"type":"NodePort"`)})
	kept := mustDo[corev1.Service](t, server, call{method: "PUT", path: svcPath + "/a", body: svcBody("a", `,"type":"NodePort","selector":{"x":"y"}`)})
	if kept.Spec.ClusterIP != made.Spec.ClusterIP || kept.Spec.Ports[0].NodePort != made.Spec.Ports[0].NodePort {
		t.Errorf("%+v became %+v", made.Spec, kept.Spec)
	}
	status := mustDo[corev1.Service](
		t,
		server,
		call{method: "PATCH", path: svcPath + "/a/status", contentType: string(types.MergePatchType), body: `{"status":{"loadBalancer":{}},"metadata":{"labels":{"l":"m"}}}`},
	)
	if status.Spec.ClusterIP != made.Spec.ClusterIP {
		t.Errorf("after status: %+v", status.Spec)
	}
	internal := mustDo[corev1.Service](t, server, call{method: "PATCH", path: svcPath + "/a", contentType: string(types.MergePatchType), body: `{"spec":{"type":"ClusterIP"}}`})
	if internal.Spec.ClusterIP != made.Spec.ClusterIP || internal.Spec.Ports[0].NodePort != 0 {
		t.Errorf("without node ports: %+v", internal.Spec)
	}
}

func TestNodePortsOfOneService(t *testing.T) {
	server, _ := newServer(t)
	dns := mustDo[corev1.Service](t, server, call{method: "POST", path: svcPath, body: `{"metadata":{"name":"dns"},"spec":{"type":"NodePort","ports":[` +
		`{"name":"u","port":53,"protocol":"UDP"},{"name":"t","port":53,"protocol":"TCP"},{"name":"m","port":9153}]}}`})
	p := dns.Spec.Ports
	if p[0].NodePort != p[1].NodePort || p[2].NodePort == p[0].NodePort || p[2].NodePort == 0 {
		t.Errorf("ports = %+v", p)
	}
	local := mustDo[corev1.Service](t, server, call{method: "POST", path: svcPath, body: svcBody("lb", `,"type":"LoadBalancer","externalTrafficPolicy":"Local"`)})
	if h := local.Spec.HealthCheckNodePort; h < 30000 || h == local.Spec.Ports[0].NodePort {
		t.Errorf("health port %d, node port %d", h, local.Spec.Ports[0].NodePort)
	}
	none := mustDo[corev1.Service](t, server, call{method: "POST", path: svcPath, body: svcBody("none", `,"type":"LoadBalancer","allocateLoadBalancerNodePorts":false`)})
	if none.Spec.Ports[0].NodePort != 0 {
		t.Errorf("ports = %+v", none.Spec.Ports)
	}
	headless := mustDo[corev1.Service](t, server, call{method: "POST", path: svcPath, body: svcBody("headless", `,"clusterIP":"None"`)})
	if headless.Spec.ClusterIP != "None" || headless.Spec.ClusterIPs[0] != "None" {
		t.Errorf("headless = %+v", headless.Spec)
	}
}

// TestHealthPort: a balancer needs its port even if it needs no node ports, until it
// is no balancer any more.
func TestHealthPort(t *testing.T) {
	server, _ := newServer(t)
	made := mustDo[corev1.Service](t, server, call{method: "POST", path: svcPath,
		body: svcBody("s", `,"type":"LoadBalancer","externalTrafficPolicy":"Local","allocateLoadBalancerNodePorts":false`)})
	if made.Spec.HealthCheckNodePort == 0 || made.Spec.Ports[0].NodePort != 0 {
		t.Fatalf("health port %d, node port %d", made.Spec.HealthCheckNodePort, made.Spec.Ports[0].NodePort)
	}
	asked := fmt.Sprintf(`,"type":"LoadBalancer","externalTrafficPolicy":"Local","healthCheckNodePort":%d`, made.Spec.HealthCheckNodePort)
	refusal{code: 422, reason: metav1.StatusReasonInvalid, messageHas: "spec.healthCheckNodePort"}.check(t, "taken",
		call{method: "POST", path: svcPath, body: svcBody("t", asked)}.do(t, server))
	refusal{code: 422, reason: metav1.StatusReasonInvalid, messageHas: "not in the valid range"}.check(t, "out of range",
		call{method: "POST", path: svcPath, body: svcBody("t", `,"type":"LoadBalancer","externalTrafficPolicy":"Local","healthCheckNodePort":99`)}.do(t, server))
	changed := mustDo[corev1.Service](t, server, call{method: "PATCH", path: svcPath + "/s", contentType: patchTypeOf["merge"], body: `{"spec":{"type":"ClusterIP"}}`})
	if changed.Spec.HealthCheckNodePort != 0 || changed.Spec.AllocateLoadBalancerNodePorts != nil {
		t.Errorf("after the change: %+v", changed.Spec)
	}
	mustDo[corev1.Service](t, server, call{method: "POST", path: svcPath, body: svcBody("t", asked)})
}

// rangePath is where ranges are.
const rangePath, addressPath = "/apis/networking.k8s.io/v1/servicecidrs", "/apis/networking.k8s.io/v1/ipaddresses"

func rangeBody(name, prefix string) string {
	return `{"apiVersion":"networking.k8s.io/v1","kind":"ServiceCIDR","metadata":{"name":"` + name + `"},"spec":{"cidrs":["` + prefix + `"]}}`
}

// TestServicesDrawFromAllRangesThatAreReady, and from none that is not or is being deleted.
func TestServicesDrawFromAllRangesThatAreReady(t *testing.T) {
	server, _ := newServer(t)
	ready := func(name, status string) {
		t.Helper()
		mustDo[networkingv1.ServiceCIDR](t, server, call{method: "PATCH", path: rangePath + "/" + name + "/status", contentType: string(types.MergePatchType),
			body: `{"status":{"conditions":[{"type":"Ready","status":"` + status + `","reason":"T","message":"m","lastTransitionTime":"2030-01-01T00:00:00Z"}]}}`})
	}
	asks := func(name, ip string, want int) {
		t.Helper()
		if got := (call{method: "POST", path: svcPath, body: svcBody(name, `,"clusterIP":"`+ip+`"`)}).do(t, server); got.code != want {
			t.Errorf("%s: %d %s", ip, got.code, got.body)
		}
	}
	asks("early", "10.1.0.1", 422)
	mustDo[networkingv1.ServiceCIDR](t, server, call{method: "POST", path: rangePath, body: rangeBody("small", "10.1.0.0/29")})
	asks("network", "10.1.0.0", 422)
	asks("broadcast", "10.1.0.7", 422)
	asks("first", "10.1.0.1", 201)
	asks("last", "10.1.0.6", 201)
	ready("small", "False")
	asks("unready", "10.1.0.2", 422)
	ready("small", "True")
	mustDo[networkingv1.ServiceCIDR](t, server, call{method: "POST", path: rangePath, body: rangeBody("kubernetes", "10.96.0.0/16")})
	ready("kubernetes", "False")
	drawn := map[string]bool{}
	for i := range 4 {
		made := mustDo[corev1.Service](t, server, call{method: "POST", path: svcPath, body: svcBody(fmt.Sprint("s", i), "")})
		drawn[made.Spec.ClusterIP] = strings.HasPrefix(made.Spec.ClusterIP, "10.1.0.")
	}
	if want := map[string]bool{"10.1.0.2": true, "10.1.0.3": true, "10.1.0.4": true, "10.1.0.5": true}; !maps.Equal(drawn, want) {
		t.Errorf("drawn: %v", drawn)
	}
	if got := (call{method: "POST", path: svcPath, body: svcBody("full", "")}).do(t, server); got.code != 500 || !strings.Contains(got.body, "range is full") {
		t.Errorf("full: %d %s", got.code, got.body)
	}
	kept := mustDo[corev1.Service](t, server, call{method: "PATCH", path: svcPath + "/first", contentType: string(types.MergePatchType), body: `{"metadata":{"labels":{"a":"b"}}}`})
	if kept.Spec.ClusterIP != "10.1.0.1" {
		t.Errorf("%+v", kept.Spec)
	}
	ready("kubernetes", "True")
	mustDo[corev1.Service](t, server, call{method: "POST", path: svcPath, body: svcBody("again", "")})
}

// TestAddressesAreShown as upstream shows them, and go with their Service; what another object holds is not given.
func TestAddressesAreShown(t *testing.T) {
	server, _ := newServer(t)
	get := func(name string, want int) networkingv1.IPAddress {
		t.Helper()
		got := call{method: "GET", path: addressPath + "/" + name}.do(t, server)
		var address networkingv1.IPAddress
		if err := json.Unmarshal([]byte(got.body), &address); err != nil || got.code != want {
			t.Errorf("%s: %d, want %d: %v", name, got.code, want, err)
		}
		return address
	}
	mustDo[corev1.Service](t, server, call{method: "POST", path: svcPath, body: svcBody("a", `,"clusterIP":"10.96.9.9"`)})
	shown := get("10.96.9.9", 200)
	want := &networkingv1.ParentReference{Resource: "services", Namespace: "default", Name: "a"}
	if shown.UID == "" || shown.CreationTimestamp.IsZero() || shown.Spec.ParentRef == nil || *shown.Spec.ParentRef != *want ||
		!maps.Equal(shown.Labels, map[string]string{"ipaddress.kubernetes.io/ip-family": "IPv4", "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io"}) {
		t.Errorf("%+v", shown)
	}
	theirs := `{"metadata":{"name":"10.96.8.8"},"spec":{"parentRef":{"group":"example.com","resource":"gateways","name":"g"}}}`
	mustDo[networkingv1.IPAddress](t, server, call{method: "POST", path: addressPath, body: theirs})
	if got := (call{method: "POST", path: svcPath, body: svcBody("b", `,"clusterIP":"10.96.8.8"`)}).do(t, server); got.code != 422 || !strings.Contains(got.body, "already allocated") {
		t.Errorf("%d %s", got.code, got.body)
	}
	if got := (call{method: "POST", path: svcPath + "?dryRun=All", body: svcBody("dry", `,"clusterIP":"10.96.7.7"`)}).do(t, server); got.code != 201 {
		t.Errorf("%d %s", got.code, got.body)
	}
	get("10.96.7.7", 404)
	for name, letGo := range map[string]call{
		"10.96.9.9": {method: "DELETE", path: svcPath + "/a"},
		"10.96.6.6": {method: "PATCH", path: svcPath + "/c", contentType: string(types.MergePatchType), body: `{"spec":{"type":"ExternalName","externalName":"example.org"}}`},
	} {
		if name == "10.96.6.6" {
			mustDo[corev1.Service](t, server, call{method: "POST", path: svcPath, body: svcBody("c", `,"clusterIP":"10.96.6.6"`)})
			get(name, 200)
		}
		if got := letGo.do(t, server); got.code != 200 {
			t.Errorf("%d %s", got.code, got.body)
		}
		get(name, 404)
	}
	get("10.96.8.8", 200)
}
