package gatewayapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	v1 "sigs.k8s.io/gateway-api/apis/v1"
)

func object(kind, name string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": GroupVersion.String(), "kind": kind, "metadata": map[string]any{"namespace": "n", "name": name}, "spec": spec,
	}}
}

// offered is a discovery whose answer changes.
type offered struct {
	discovery.DiscoveryInterface
	now atomic.Pointer[metav1.APIResourceList]
}

func (o *offered) ServerResourcesForGroupVersion(string) (*metav1.APIResourceList, error) {
	if list := o.now.Load(); list != nil {
		return list, nil
	}
	return nil, errors.New("not found")
}

// TestKindsThatComeLater: nothing is asked of a kind before it is served, and what cannot be read is left out.
func TestKindsThatComeLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lists := map[schema.GroupVersionResource]string{
			Resource("gateways"): "GatewayList", Resource("httproutes"): "HTTPRouteList", Resource("gatewayclasses"): "GatewayClassList",
			Resource("grpcroutes"): "GRPCRouteList", Resource("referencegrants"): "ReferenceGrantList",
		}
		client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), lists)
		for _, g := range []*unstructured.Unstructured{
			object("Gateway", "good", map[string]any{"gatewayClassName": "c"}), object("Gateway", "odd", map[string]any{"gatewayClassName": int64(7)}),
		} { // the fake client guesses another plural of what it is made with
			if err := client.Tracker().Create(Resource("gateways"), g, "n"); err != nil {
				t.Fatal(err)
			}
		}
		typed := &offered{}
		var changes atomic.Int32
		w := NewWatcher(Config{
			Client: client, Discovery: typed, Changed: func(metav1.Object, metav1.Object) { changes.Add(1) },
			Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
		})
		ctx, cancel := context.WithCancel(t.Context())
		var children sync.WaitGroup
		children.Go(func() { w.Run(ctx) })
		time.Sleep(time.Hour)
		if _, known := w.Objects(); known || len(client.Actions()) > 0 {
			t.Errorf("asked for what is not served: %v", client.Actions())
		}
		typed.now.Store(&metav1.APIResourceList{GroupVersion: GroupVersion.String(), APIResources: []metav1.APIResource{
			{Name: "gateways"}, {Name: "gateways/status"}, {Name: "tcproutes"},
		}})
		time.Sleep(time.Minute)
		synctest.Wait()
		objects, known := w.Objects()
		classes := map[string]string{}
		for _, g := range objects.Gateways {
			classes[g.Name] = string(g.Spec.GatewayClassName)
		}
		if !known || fmt.Sprint(classes) != "map[good:c odd:]" || len(objects.HTTPRoutes) > 0 {
			t.Errorf("%v %+v", classes, objects)
		}
		before := changes.Load()
		if _, err := client.Resource(Resource("gateways")).Namespace("n").Create(ctx, object("Gateway", "new", nil), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if objects, _ = w.Objects(); len(objects.Gateways) != 3 || changes.Load() != before+1 {
			t.Errorf("%d Gateways after %d changes", len(objects.Gateways), changes.Load()-before)
		}
		cancel()
		children.Wait()
	})
}

func TestGrants(t *testing.T) {
	name := v1.ObjectName("s")
	grant := func(namespace, from string, to v1.ReferenceGrantTo) []*v1.ReferenceGrant {
		return []*v1.ReferenceGrant{{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}, Spec: v1.ReferenceGrantSpec{
			From: []v1.ReferenceGrantFrom{{Group: v1.GroupName, Kind: "Gateway", Namespace: v1.Namespace(from)}}, To: []v1.ReferenceGrantTo{to},
		}}}
	}
	r := Reference{FromKind: "Gateway", FromNamespace: "a", ToKind: "Secret", ToNamespace: "b", ToName: "s"}
	other := v1.ObjectName("t")
	for what, test := range map[string]struct {
		grants []*v1.ReferenceGrant
		want   bool
	}{
		"none":              {nil, false},
		"all":               {grant("b", "a", v1.ReferenceGrantTo{Kind: "Secret"}), true},
		"by name":           {grant("b", "a", v1.ReferenceGrantTo{Kind: "Secret", Name: &name}), true},
		"another name":      {grant("b", "a", v1.ReferenceGrantTo{Kind: "Secret", Name: &other}), false},
		"another kind":      {grant("b", "a", v1.ReferenceGrantTo{Kind: "Service"}), false},
		"another group":     {grant("b", "a", v1.ReferenceGrantTo{Group: "x", Kind: "Secret"}), false},
		"another namespace": {grant("c", "a", v1.ReferenceGrantTo{Kind: "Secret"}), false},
		"of others":         {grant("b", "c", v1.ReferenceGrantTo{Kind: "Secret"}), false},
	} {
		if got := Permitted(test.grants, r); got != test.want {
			t.Errorf("%s: %t", what, got)
		}
	}
	if r.ToNamespace = "a"; !Permitted(nil, r) {
		t.Error("refused within a namespace")
	}
}
