package apiservice

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdfake "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/fake"
	crdinformers "k8s.io/apiextensions-apiserver/pkg/client/informers/externalversions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clienttesting "k8s.io/client-go/testing"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/kube-aggregator/pkg/apis/apiregistration/v1/helper"
	"k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset/fake"
	"k8s.io/kube-aggregator/pkg/client/informers/externalversions"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
	"github.com/setpoint-io/setpoint/controllers/reconcile/reconciletest"
)

// probe answers as it is told.
type probe struct{ failing atomic.Bool }

func (p *probe) Probe(context.Context, *apiregistrationv1.APIService) error {
	if p.failing.Load() {
		return errors.New("nobody answers")
	}
	return nil
}

// world runs the controller over the published fakes until the test ends.
type world struct {
	*reconciletest.World
	t           *testing.T
	client      *fake.Clientset
	definitions *crdfake.Clientset
	probe       probe
}

func newWorld(t *testing.T, local ...*apiregistrationv1.APIService) *world {
	t.Helper()
	w := &world{World: reconciletest.New(t), t: t, client: fake.NewClientset(), definitions: crdfake.NewClientset()}
	services := externalversions.NewSharedInformerFactory(w.client, 0)
	definitions := crdinformers.NewSharedInformerFactory(w.definitions, 0)
	w.Serve(apiServices.Declaration().Resource, services.Apiregistration().V1().APIServices().Informer())
	w.Serve(reconcile.CustomResourceDefinitions.Declaration().Resource, definitions.Apiextensions().V1().CustomResourceDefinitions().Informer())
	ctx, cancel := context.WithCancel(t.Context())
	services.Start(ctx.Done())
	definitions.Start(ctx.Done())
	t.Cleanup(func() { cancel(); services.Shutdown(); definitions.Shutdown() })
	env := w.Env()
	env.Aggregator = w.client
	w.RunIn(env, New(local, &w.probe))
	return w
}

// writes are the changes of APIServices since the last call.
func (w *world) writes() []string {
	w.Settle()
	var all []string
	for _, a := range w.client.Actions() {
		manager := fieldManager
		switch write := a.(type) {
		case clienttesting.CreateActionImpl:
			manager = write.CreateOptions.FieldManager
		case clienttesting.UpdateActionImpl:
			manager = write.UpdateOptions.FieldManager
		}
		if manager != "kube-apiserver" {
			w.t.Errorf("%s by %q, upstream's is kube-apiserver", a.GetVerb(), manager)
		}
		switch a.GetVerb() {
		case "create", "delete":
			all = append(all, a.GetVerb())
		case "update":
			all = append(all, a.GetVerb()+" "+a.GetSubresource())
		}
	}
	w.client.ClearActions()
	return all
}

func (w *world) get(name string) *apiregistrationv1.APIService {
	w.t.Helper()
	s, err := w.client.ApiregistrationV1().APIServices().Get(w.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// said is the verdict on an APIService.
func (w *world) said(name string) string {
	w.t.Helper()
	w.Settle()
	c := helper.GetAPIServiceConditionByType(w.get(name), apiregistrationv1.Available)
	if c == nil {
		return "nothing"
	}
	return string(c.Status) + " " + c.Reason + ": " + c.Message
}

func apiService(group string, to *apiregistrationv1.ServiceReference) *apiregistrationv1.APIService {
	return &apiregistrationv1.APIService{
		ObjectMeta: metav1.ObjectMeta{Name: "v1." + group},
		Spec:       apiregistrationv1.APIServiceSpec{Group: group, Version: "v1", GroupPriorityMinimum: 100, VersionPriority: 10, Service: to},
	}
}

func TestLocalVersionsAreRegistered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, apiService("apps", nil))
		if diff := cmp.Diff([]string{"create", "update status"}, w.writes()); diff != "" {
			t.Error(diff)
		}
		if how := w.get("v1.apps").Labels[managedLabel]; how != manageOnStart {
			t.Errorf("label %q", how)
		}
		if got := w.said("v1.apps"); got != "True Local: Local APIServices are always available" {
			t.Error(got)
		}
		d := &apiextensionsv1.CustomResourceDefinition{
			ObjectMeta: metav1.ObjectMeta{Name: "tabs.x.com"},
			Spec: apiextensionsv1.CustomResourceDefinitionSpec{Group: "x.com", Versions: []apiextensionsv1.CustomResourceDefinitionVersion{
				{Name: "v1", Served: true}, {Name: "v2", Served: false}}},
		}
		definitions := w.definitions.ApiextensionsV1().CustomResourceDefinitions()
		if _, err := definitions.Create(t.Context(), d, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		w.writes()
		if s := w.get("v1.x.com"); s.Labels[managedLabel] != manageContinuously || s.Spec.GroupPriorityMinimum != 1000 || s.Spec.VersionPriority != 100 {
			t.Errorf("%+v", s)
		}
		if err := definitions.Delete(t.Context(), d.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"delete"}, w.writes()); diff != "" {
			t.Error(diff)
		}
		time.Sleep(time.Hour)
		if writes := w.writes(); len(writes) > 0 {
			t.Errorf("a settled world was written to: %v", writes)
		}
	})
}

func TestServersAreJudged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s := apiService("x.com", &apiregistrationv1.ServiceReference{Namespace: "ns", Name: "api", Port: new(int32(443))})
		if _, err := w.client.ApiregistrationV1().APIServices().Create(t.Context(), s, metav1.CreateOptions{FieldManager: fieldManager}); err != nil {
			t.Fatal(err)
		}
		expect := func(want string) {
			t.Helper()
			if got := w.said(s.Name); got != want {
				t.Errorf("%q, want %q", got, want)
			}
		}
		expect(`False ServiceNotFound: service/api in "ns" is not present`)
		reconciletest.Add(w.World, &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: "api", Namespace: "ns"},
			Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, Ports: []corev1.ServicePort{{Name: "https", Port: 443}}},
		})
		expect(`False EndpointsNotFound: cannot find endpointslices for service/api in "ns"`)
		w.probe.failing.Store(true)
		reconciletest.Add(w.World, &discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{Name: "api-1", Namespace: "ns", Labels: map[string]string{discoveryv1.LabelServiceName: "api"}},
			Ports:      []discoveryv1.EndpointPort{{Name: new("https"), Port: new(int32(8443))}}, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"}}},
		})
		expect("False FailedDiscoveryCheck: nobody answers")
		w.probe.failing.Store(false)
		time.Sleep(failedProbeInterval)
		expect("True Passed: all checks passed")
		w.writes()
		time.Sleep(time.Hour)
		if writes := w.writes(); len(writes) > 0 {
			t.Errorf("a settled world was written to: %v", writes)
		}
		w.probe.failing.Store(true)
		time.Sleep(probeInterval)
		expect("False FailedDiscoveryCheck: nobody answers")
	})
}

func TestEndpointsAreJudged(t *testing.T) {
	to := &apiregistrationv1.ServiceReference{Namespace: "ns", Name: "api", Port: new(int32(443))}
	service := &corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "https", Port: 443}}}}
	slice := func(port string, ready bool) *discoveryv1.EndpointSlice {
		return &discoveryv1.EndpointSlice{
			Ports:     []discoveryv1.EndpointPort{{Name: &port, Port: new(int32(1))}},
			Endpoints: []discoveryv1.Endpoint{{Conditions: discoveryv1.EndpointConditions{Ready: &ready}}},
		}
	}
	for name, c := range map[string]struct {
		service *corev1.Service
		slices  []*discoveryv1.EndpointSlice
		want    string
	}{
		"all there":  {service, []*discoveryv1.EndpointSlice{slice("https", true)}, ""},
		"other port": {&corev1.Service{}, nil, `ServicePortError: service/api in "ns" is not listening on port 443`},
		"no slices":  {service, nil, `EndpointsNotFound: cannot find endpointslices for service/api in "ns"`},
		"none ready": {service, []*discoveryv1.EndpointSlice{slice("https", false), slice("other", true)}, `MissingEndpoints: endpointslices for service/api in "ns" have no addresses with port name "https"`},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if missing, found := judgeEndpoints(to, c.service, c.slices); found {
				got = missing.Reason + ": " + missing.Message
			}
			if got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestUsersAPIServicesAreLeftAlone(t *testing.T) {
	wanted := labelled(apiService("x.com", nil), manageContinuously)
	theirs := apiService("x.com", &apiregistrationv1.ServiceReference{})
	changed := labelled(theirs, manageOnStart)
	metrics := labelled(apiService(metricsGroup, nil), manageOnStart)
	server := labelled(apiService(metricsGroup, &apiregistrationv1.ServiceReference{}), manageOnStart) // applied to it: the label stays
	renamed := metrics.DeepCopy()
	renamed.Spec.VersionPriority++
	for name, c := range map[string]struct {
		have, wanted           *apiregistrationv1.APIService
		create, update, remove bool
	}{
		"missing":        {nil, wanted, true, false, false},
		"nothing wanted": {nil, nil, false, false, false},
		"as wanted":      {wanted, wanted, false, false, false},
		"changed":        {changed, wanted, false, true, false},
		"a user's":       {theirs, wanted, false, false, false},
		"a user's alone": {theirs, nil, false, false, false},
		"served no more": {wanted, nil, false, false, true},

		"a user's metrics-server":         {server, metrics, false, false, false},
		"the metrics API without service": {renamed, metrics, false, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := register(c.have, c.wanted)
			if (s.create != nil) != c.create || (s.update != nil) != c.update || s.remove != c.remove {
				t.Errorf("%+v", s)
			}
		})
	}
}
