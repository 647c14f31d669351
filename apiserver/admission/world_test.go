package admission

import (
	"context"
	"reflect"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/setpoint-io/setpoint/apiserver/resource"
	"github.com/setpoint-io/setpoint/apiserver/storage"
	"github.com/setpoint-io/setpoint/raftstore/raftstoretest"
	"github.com/setpoint-io/setpoint/raftstore/state"
)

// worldKinds are the kinds that plugins read, without rules of their own.
var worldKinds = map[string]struct {
	new, list runtime.Object
	cluster   bool
}{
	"namespaces":             {&corev1.Namespace{}, &corev1.NamespaceList{}, true},
	"nodes":                  {&corev1.Node{}, &corev1.NodeList{}, true},
	"pods":                   {&corev1.Pod{}, &corev1.PodList{}, false},
	"services":               {&corev1.Service{}, &corev1.ServiceList{}, false},
	"configmaps":             {&corev1.ConfigMap{}, &corev1.ConfigMapList{}, false},
	"endpoints":              {&corev1.Endpoints{}, &corev1.EndpointsList{}, false},
	"endpointslices":         {&discoveryv1.EndpointSlice{}, &discoveryv1.EndpointSliceList{}, false},
	"serviceaccounts":        {&corev1.ServiceAccount{}, &corev1.ServiceAccountList{}, false},
	"limitranges":            {&corev1.LimitRange{}, &corev1.LimitRangeList{}, false},
	"persistentvolumeclaims": {&corev1.PersistentVolumeClaim{}, &corev1.PersistentVolumeClaimList{}, false},
	"persistentvolumes":      {&corev1.PersistentVolume{}, &corev1.PersistentVolumeList{}, true},
	"csidrivers":             {&storagev1.CSIDriver{}, &storagev1.CSIDriverList{}, true},
	"priorityclasses":        {&schedulingv1.PriorityClass{}, &schedulingv1.PriorityClassList{}, true},
	"storageclasses":         {&storagev1.StorageClass{}, &storagev1.StorageClassList{}, true},
	"ingresses":              {&networkingv1.Ingress{}, &networkingv1.IngressList{}, false},
	"ingressclasses":         {&networkingv1.IngressClass{}, &networkingv1.IngressClassList{}, true},
	"servicecidrs":           {&networkingv1.ServiceCIDR{}, &networkingv1.ServiceCIDRList{}, true},
	"runtimeclasses":         {&nodev1.RuntimeClass{}, &nodev1.RuntimeClassList{}, true},

	"podcertificaterequests":     {&certificatesv1.PodCertificateRequest{}, &certificatesv1.PodCertificateRequestList{}, false},
	"clustertrustbundles":        {&certificatesv1.ClusterTrustBundle{}, &certificatesv1.ClusterTrustBundleList{}, true},
	"resourceclaims":             {&resourcev1.ResourceClaim{}, &resourcev1.ResourceClaimList{}, false},
	"resourceclaimtemplates":     {&resourcev1.ResourceClaimTemplate{}, &resourcev1.ResourceClaimTemplateList{}, false},
	"certificatesigningrequests": {&certificatesv1.CertificateSigningRequest{}, &certificatesv1.CertificateSigningRequestList{}, true},
}

// world is a store with some objects and a chain of all plugins before it.
type world struct {
	store *storage.Store
	chain admission.Interface
	names map[schema.GroupVersionKind]schema.GroupVersionResource
	types *runtime.Scheme
}

func newWorld(t testing.TB, allowed authorizer.AuthorizerFunc, given ...resource.Object) *world {
	t.Helper()
	w := &world{types: runtime.NewScheme(), names: map[schema.GroupVersionKind]schema.GroupVersionResource{}}
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, discoveryv1.AddToScheme, schedulingv1.AddToScheme, storagev1.AddToScheme, networkingv1.AddToScheme, nodev1.AddToScheme, certificatesv1.AddToScheme, resourcev1.AddToScheme} {
		if err := add(w.types); err != nil {
			t.Fatal(err)
		}
	}
	var kinds []*resource.Any
	for plural, k := range worldKinds {
		gvk := w.kindOf(t, k.new)
		w.names[gvk] = gvk.GroupVersion().WithResource(plural)
		kinds = append(kinds, &resource.Any{
			GroupVersionKind: gvk, Plural: plural, ClusterScoped: k.cluster,
			New:          func() resource.Object { return fresh(k.new).(resource.Object) },
			NewList:      func() runtime.Object { return fresh(k.list) },
			Subresources: []resource.Subresource{{Name: "token"}},
		})
	}
	w.store = storage.New(raftstoretest.NewLocal(state.Options{}), w.types, kinds)
	for _, obj := range given {
		w.put(t, obj)
	}
	w.configure(t, Config{Authorizer: allowed})
	return w
}

// configure makes the chain anew.
func (w *world) configure(t testing.TB, c Config) {
	t.Helper()
	var err error
	c.Store = w.store
	if w.chain, err = New(c); err != nil {
		t.Fatal(err)
	}
}

func fresh(obj runtime.Object) runtime.Object {
	return reflect.New(reflect.TypeOf(obj).Elem()).Interface().(runtime.Object)
}

func (w *world) kindOf(t testing.TB, obj runtime.Object) schema.GroupVersionKind {
	t.Helper()
	all, _, err := w.types.ObjectKinds(obj)
	if err != nil {
		t.Fatal(err)
	}
	return all[0]
}

func (w *world) put(t testing.TB, obj resource.Object) {
	t.Helper()
	table := w.store.Table(w.names[w.kindOf(t, obj)])
	_, err := table.Write(t.Context(), obj.GetNamespace(), obj.GetName(), func(*storage.View) (*storage.Change, error) {
		return &storage.Change{Object: obj}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// request is one request before admission; a nil old makes it a create, a nil obj a
// delete.
type request struct {
	obj, old    resource.Object
	subresource string
	who         user.Info
}

func (w *world) attributes(t testing.TB, r request) admission.Attributes {
	t.Helper()
	about, op := r.obj, admission.Create
	var obj, old runtime.Object
	if r.obj != nil {
		obj = r.obj
	}
	if r.old != nil {
		old, op = r.old, admission.Update
	}
	if r.obj == nil {
		about, op = r.old, admission.Delete
	}
	gvk := w.kindOf(t, about)
	gvr, known := w.names[gvk]
	if !known {
		gvr = corev1.SchemeGroupVersion.WithResource("pods") // what Bindings are posted to
	}
	return admission.NewAttributesRecord(obj, old, gvk, about.GetNamespace(), about.GetName(), gvr, r.subresource, op, &metav1.CreateOptions{}, false, r.who)
}

// admit runs the whole chain, as a handler does.
func (w *world) admit(t testing.TB, r request) error {
	t.Helper()
	a, ctx := w.attributes(t, r), t.Context()
	if err := w.chain.(admission.MutationInterface).Admit(ctx, a, nil); err != nil {
		return err
	}
	return w.chain.(admission.ValidationInterface).Validate(ctx, a, nil)
}

// check compares a refusal with the words that a user must read; none means
// admitted.
func check(t *testing.T, err error, words string) {
	t.Helper()
	switch {
	case words == "" && err != nil:
		t.Errorf("refused: %v", err)
	case words != "" && err == nil:
		t.Errorf("admitted, want %q", words)
	case words != "" && !strings.Contains(err.Error(), words):
		t.Errorf("refused with %q, want %q", err, words)
	}
}

func named(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }

func inNS(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name, Namespace: "ns"} }

// withNamespace are the objects without which no pod comes into "ns".
func withNamespace(more ...resource.Object) []resource.Object {
	return append([]resource.Object{
		&corev1.Namespace{ObjectMeta: named("ns")},
		&corev1.ServiceAccount{ObjectMeta: inNS("default")},
	}, more...)
}

func podNamed(name string, edit ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: inNS(name), Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
	for _, e := range edit {
		e(pod)
	}
	return pod
}

func allowAll(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
	return authorizer.DecisionAllow, "", nil
}
