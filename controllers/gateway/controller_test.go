package gateway

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/gateway-api/pkg/features"
	"sigs.k8s.io/yaml"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
	"github.com/setpoint-io/setpoint/controllers/reconcile/reconciletest"
	"github.com/setpoint-io/setpoint/internal/gatewayapi"
	"github.com/setpoint-io/setpoint/internal/reserved"
)

// apis is a server with the Gateway API, in part.
type apis struct {
	*dynamicfake.FakeDynamicClient
	t *testing.T
}

var kinds = map[string]string{
	"gatewayclasses": "GatewayClass", "gateways": "Gateway", "httproutes": "HTTPRoute", "grpcroutes": "GRPCRoute", "referencegrants": "ReferenceGrant",
	"tlsroutes": "TLSRoute", "listenersets": "ListenerSet", "backendtlspolicies": "BackendTLSPolicy",
}

func serve(t *testing.T, client *fake.Clientset) *apis {
	lists, list := map[schema.GroupVersionResource]string{}, &metav1.APIResourceList{GroupVersion: gatewayapi.GroupVersion.String()}
	for plural, kind := range kinds {
		lists[gatewayapi.Resource(plural)] = kind + "List"
		list.APIResources = append(list.APIResources, metav1.APIResource{Name: plural})
	}
	client.Resources = []*metav1.APIResourceList{list}
	return &apis{dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), lists), t}
}

func (a *apis) add(plural, text string) {
	a.t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		a.t.Fatal(err)
	}
	o.SetGroupVersionKind(gatewayapi.GroupVersion.WithKind(kinds[plural]))
	o.SetGeneration(1)
	if _, err := a.Resource(gatewayapi.Resource(plural)).Namespace(o.GetNamespace()).Create(a.t.Context(), o, metav1.CreateOptions{}); err != nil {
		a.t.Fatal(err)
	}
}

// told is what the conditions below a field of a status say, as "Type=Status/reason".
func (a *apis) told(plural, namespace, name string, at func(status map[string]any) any) string {
	a.t.Helper()
	o, err := a.Resource(gatewayapi.Resource(plural)).Namespace(namespace).Get(a.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		a.t.Fatal(err)
	}
	status, _ := o.Object["status"].(map[string]any)
	list, _ := at(status).([]any)
	var words []string
	for _, each := range list {
		c := each.(map[string]any)
		words = append(words, fmt.Sprintf("%s=%s/%s", c["type"], c["status"], c["reason"]))
	}
	slices.Sort(words)
	return strings.Join(words, " ")
}

func own(status map[string]any) any { return status["conditions"] }

func first(list string) func(status map[string]any) any {
	return func(status map[string]any) any {
		all, _ := status[list].([]any)
		if len(all) == 0 {
			return nil
		}
		return all[0].(map[string]any)["conditions"]
	}
}

// writes are those since the last call.
func (a *apis) writes() (all []string) {
	for _, action := range a.Actions() {
		if verb := action.GetVerb(); verb != "list" && verb != "watch" && verb != "get" {
			all = append(all, verb+" "+action.GetResource().Resource)
		}
	}
	a.ClearActions()
	slices.Sort(all) // a pass may begin before its own writes are seen, and write the same again, which a real server refuses
	return slices.Compact(all)
}

func node(name, address string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"setpoint.io/ingress": "80-443"}}}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}}
	return n
}

func TestStatuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := reconciletest.New(t)
		gateways := serve(t, w.Client)
		reconciletest.Add(w, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}})
		gateways.add("gateways", "metadata: {name: g, namespace: ns}\nspec: {gatewayClassName: setpoint, listeners: [{name: http, port: 80, protocol: HTTP}]}")
		gateways.add("httproutes", `
metadata: {name: r, namespace: ns}
spec: {parentRefs: [{name: g}, {name: theirs}], rules: [{backendRefs: [{name: web, port: 80}]}]}
status: {parents: [{parentRef: {name: theirs}, controllerName: example.com/theirs, conditions: []}]}`)
		gateways.add("listenersets", "metadata: {name: s, namespace: ns}\nspec: {parentRef: {name: g}, listeners: [{name: more, port: 81, protocol: HTTP}]}")
		gateways.add("grpcroutes", "metadata: {name: r, namespace: ns}\nspec: {parentRefs: [{name: g, sectionName: none}]}")
		controller := New(false)
		controller.Run = func(ctx context.Context, env *reconcile.Env) error { return run(ctx, env, gateways, false) }
		w.Run(controller)
		w.Settle()
		time.Sleep(time.Minute)
		gateways.writes()
		w.Settle()
		if all := gateways.writes(); len(all) > 0 {
			t.Errorf("%v while no node serves Gateways", all)
		}
		reconciletest.Add(w, node("a", "192.0.2.1"))
		w.Settle()
		time.Sleep(time.Second)
		w.Settle()
		for _, c := range []struct{ what, got, want string }{
			{"class", gateways.told("gatewayclasses", "", "setpoint", own), "Accepted=True/Accepted"},
			{"Gateway", gateways.told("gateways", "ns", "g", own), "Accepted=True/Accepted Programmed=True/Programmed"},
			{"listener", gateways.told("gateways", "ns", "g", first("listeners")),
				"Accepted=True/Accepted Conflicted=False/NoConflicts Programmed=True/Programmed ResolvedRefs=True/ResolvedRefs"},
			{"ListenerSet", gateways.told("listenersets", "ns", "s", own), "Accepted=False/NotAllowed Programmed=False/NotAllowed"},
			{"others' status", gateways.told("httproutes", "ns", "r", first("parents")), ""},
			{"GRPCRoute", gateways.told("grpcroutes", "ns", "r", first("parents")), "Accepted=False/NoMatchingParent ResolvedRefs=True/ResolvedRefs"},
			{"HTTPRoute", gateways.told("httproutes", "ns", "r", func(s map[string]any) any { return s["parents"].([]any)[1].(map[string]any)["conditions"] }),
				"Accepted=True/Accepted ResolvedRefs=False/BackendNotFound"},
		} {
			if c.got != c.want {
				t.Errorf("%s: %s, want %s", c.what, c.got, c.want)
			}
		}
		gateways.writes()
		time.Sleep(10 * time.Minute)
		if all := gateways.writes(); len(all) > 0 {
			t.Errorf("%v although nothing changed", all)
		}
		reconciletest.Add(w, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}})
		w.Settle()
		if all := gateways.writes(); !slices.Equal(all, []string{"update httproutes"}) {
			t.Errorf("a Service that came: %v", all)
		}
		if err := gateways.Resource(gatewayapi.Resource("gateways")).Namespace("ns").Delete(t.Context(), "g", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		w.Settle()
		if all := gateways.writes(); !slices.Equal(all, []string{"delete gateways", "update grpcroutes", "update httproutes"}) {
			t.Errorf("a Gateway that went: %v", all)
		}
	})
}

// TestStatusesOfPolicies: they follow the ConfigMaps, and what others tell stays.
func TestStatusesOfPolicies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := reconciletest.New(t)
		gateways := serve(t, w.Client)
		reconciletest.Add(w, node("a", "192.0.2.1"))
		reconciletest.Add(w, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}})
		gateways.add("gateways", "metadata: {name: g, namespace: ns}\nspec: {gatewayClassName: setpoint, listeners: [{name: http, port: 80, protocol: HTTP}]}")
		gateways.add("httproutes", "metadata: {name: r, namespace: ns}\nspec: {parentRefs: [{name: g}], rules: [{backendRefs: [{name: web, port: 80}]}]}")
		gateways.add("backendtlspolicies", `
metadata: {name: p, namespace: ns}
spec: {targetRefs: [{group: "", kind: Service, name: web}], validation: {hostname: a.com, caCertificateRefs: [{group: "", kind: ConfigMap, name: ca}]}}
status: {ancestors: [{ancestorRef: {name: theirs}, controllerName: example.com/theirs, conditions: []}]}`)
		controller := New(false)
		controller.Run = func(ctx context.Context, env *reconcile.Env) error { return run(ctx, env, gateways, false) }
		w.Run(controller)
		ours := func(s map[string]any) any { return s["ancestors"].([]any)[1].(map[string]any)["conditions"] }
		expect := func(what, want string) {
			t.Helper()
			time.Sleep(time.Minute)
			w.Settle()
			if got := gateways.told("backendtlspolicies", "ns", "p", ours); got != want {
				t.Errorf("%s: %s, want %s", what, got, want)
			}
		}
		expect("no ConfigMap", "Accepted=False/NoValidCACertificate ResolvedRefs=False/InvalidCACertificateRef")
		configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "ca", ResourceVersion: "1"}, Data: map[string]string{"ca.crt": authority(t)}}
		reconciletest.Add(w, configMap)
		expect("a ConfigMap", "Accepted=True/Accepted ResolvedRefs=True/ResolvedRefs")
		if err := gateways.Resource(gatewayapi.Resource("httproutes")).Namespace("ns").Delete(t.Context(), "r", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		w.Settle()
		left := 0
		gateways.told("backendtlspolicies", "ns", "p", func(s map[string]any) any {
			left = len(s["ancestors"].([]any))
			return nil
		})
		if left != 1 {
			t.Errorf("a policy that nobody needs has %d ancestors", left)
		}
	})
}

// authority is a certificate, as PEM.
func authority(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// TestFeaturesAreThoseOfTheAPI: by name, in the order that it demands.
func TestFeaturesAreThoseOfTheAPI(t *testing.T) {
	known := map[string]bool{}
	for f := range features.AllFeatures {
		known[string(f.Name)] = true
	}
	var names []string
	for _, f := range featuresOfClass {
		names = append(names, string(f.Name))
		if !known[string(f.Name)] {
			t.Errorf("%s is none", f.Name)
		}
	}
	if !slices.IsSorted(names) {
		t.Errorf("%v", names)
	}
}

// TestOwnAddresses: each Gateway has a Service, which leads to the nodes at its node ports, and the Service's address.
func TestOwnAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := reconciletest.New(t)
		gateways := serve(t, w.Client)
		reconciletest.Add(w, node("a", "192.0.2.1"))
		reconciletest.Add(w, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "gateway-taken"}})
		for _, name := range []string{"g", "taken"} {
			gateways.add("gateways", "metadata: {name: "+name+", namespace: ns, uid: uid-"+name+
				"}\nspec: {gatewayClassName: setpoint, listeners: [{name: http, port: 80, protocol: HTTP}]}")
		}
		gateways.add("gateways", "metadata: {name: h, namespace: ns, uid: uid-h}\nspec: {gatewayClassName: setpoint, "+
			"listeners: [{name: http, port: 80, protocol: HTTP}], allowedListeners: {namespaces: {from: Same}}}")
		gateways.add("listenersets", "metadata: {name: s, namespace: ns}\nspec: {parentRef: {name: h}, listeners: [{name: more, port: 81, protocol: HTTP}]}")
		controller := New(true)
		controller.Run = func(ctx context.Context, env *reconcile.Env) error { return run(ctx, env, gateways, true) }
		w.Run(controller)
		time.Sleep(time.Minute)
		w.Settle()
		services := w.Client.CoreV1().Services("ns")
		service, err := services.Get(t.Context(), "gateway-g", metav1.GetOptions{})
		if err != nil || service.Spec.Type != corev1.ServiceTypeLoadBalancer || len(service.Spec.Ports) != 1 || service.Spec.Ports[0].Port != 80 {
			t.Fatalf("%+v, %v", service, err)
		}
		if both, err := services.Get(t.Context(), "gateway-h", metav1.GetOptions{}); err != nil || len(both.Spec.Ports) != 2 || both.Spec.Ports[1].Port != 81 {
			t.Errorf("the ports with those of the ListenerSet: %+v, %v", both, err)
		}
		const pending = "Accepted=True/Accepted Programmed=False/Pending"
		if got := gateways.told("listenersets", "ns", "s", own); got != pending {
			t.Errorf("%s, want %s", got, pending)
		}
		service.Spec.Ports[0].NodePort = 30080
		if service, err = services.Update(t.Context(), service, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.64"}}
		if _, err := services.UpdateStatus(t.Context(), service, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		w.Settle()
		slice, err := w.Client.DiscoveryV1().EndpointSlices("ns").Get(t.Context(), "gateway-g", metav1.GetOptions{})
		if err != nil || *slice.Ports[0].Port != 30080 || slice.Endpoints[0].Addresses[0] != "192.0.2.1" {
			t.Errorf("%+v, %v", slice, err)
		}
		for name, want := range map[string]string{"g": "192.0.2.64", "taken": "192.0.2.1"} {
			o, err := gateways.Resource(gatewayapi.Resource("gateways")).Namespace("ns").Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if all, _, _ := unstructured.NestedSlice(o.Object, "status", "addresses"); len(all) != 1 || all[0].(map[string]any)["value"] != want {
				t.Errorf("%s is at %v, want %s", name, all, want)
			}
		}
		// Once no node may serve, the Service leads to none: those that it led to have closed their ports.
		chosen := node("a", "192.0.2.1")
		reconciletest.Edit(w, chosen, func(n *corev1.Node) { n.Labels[reserved.EdgeLabel] = "false" })
		w.Settle()
		slice, err = w.Client.DiscoveryV1().EndpointSlices("ns").Get(t.Context(), "gateway-g", metav1.GetOptions{})
		if err != nil || len(slice.Endpoints) != 0 {
			t.Errorf("%+v, %v", slice, err)
		}
	})
}

func TestLabelsHoldLongNames(t *testing.T) {
	for _, name := range []string{"g", strings.Repeat("a", 62) + ".example", strings.Repeat("a", 100)} {
		if got := label(name); !strings.HasPrefix(name, got) || len(validation.IsValidLabelValue(got)) > 0 {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestAGatewayIsToldWhyItHasNoAddress: what its Service is told, or why it has none; and it has the address as soon as the Service does.
func TestAGatewayIsToldWhyItHasNoAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := reconciletest.New(t)
		gateways := serve(t, w.Client)
		reconciletest.Add(w, node("a", "192.0.2.1"))
		w.Client.PrependReactor("create", "services", func(action clienttesting.Action) (bool, runtime.Object, error) {
			made := action.(clienttesting.CreateAction).GetObject().(*corev1.Service)
			if made.Name != "gateway-refused" {
				return false, nil, nil
			}
			return true, nil, apierrors.NewForbidden(corev1.Resource("services"), made.Name, errors.New("too many node ports"))
		})
		for _, name := range []string{"g", "refused"} {
			gateways.add("gateways", "metadata: {name: "+name+", namespace: ns, uid: uid-"+name+
				"}\nspec: {gatewayClassName: setpoint, listeners: [{name: http, port: 80, protocol: HTTP}]}")
		}
		controller := New(true)
		controller.Run = func(ctx context.Context, env *reconcile.Env) error { return run(ctx, env, gateways, true) }
		w.Run(controller)
		expect := func(name, status, message string) {
			t.Helper()
			time.Sleep(time.Minute)
			w.Settle()
			o, err := gateways.Resource(gatewayapi.Resource("gateways")).Namespace("ns").Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			all, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
			i := slices.IndexFunc(all, func(c any) bool { return c.(map[string]any)["type"] == "Programmed" })
			if i < 0 {
				t.Fatalf("%s: %v", name, all)
			}
			said := all[i].(map[string]any)
			if text, _ := said["message"].(string); said["status"] != status || text != message {
				t.Errorf("%s: %v, want %s: %s", name, said, status, message)
			}
		}
		expect("g", "False", "it waits for an address of its own")
		expect("refused", "False", `it waits for an address of its own: address of Gateway ns/refused: services "gateway-refused" is forbidden: too many node ports`)
		services := w.Client.CoreV1().Services("ns")
		service, err := services.Get(t.Context(), "gateway-g", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		service.Status.Conditions = []metav1.Condition{{Type: addressMissing, Status: metav1.ConditionTrue, Reason: "PoolShare", Message: "2 belong to namespace ns"}}
		if service, err = services.UpdateStatus(t.Context(), service, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		expect("g", "False", "it waits for an address of its own: Service gateway-g has none: PoolShare: 2 belong to namespace ns")
		service.Status.Conditions, service.Status.LoadBalancer.Ingress = nil, []corev1.LoadBalancerIngress{{IP: "192.0.2.64"}}
		if service, err = services.UpdateStatus(t.Context(), service, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		expect("g", "False", "a listener waits for a node port")
		service.Spec.Ports[0].NodePort = 30080
		if _, err := services.Update(t.Context(), service, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		expect("g", "True", "")
	})
}
