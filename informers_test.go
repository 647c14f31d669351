package setpoint

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/util/watchlist"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-io/setpoint/apiserver/aggregation"
	"github.com/setpoint-io/setpoint/apiserver/crd"
	"github.com/setpoint-io/setpoint/apiserver/kinds"
	"github.com/setpoint-io/setpoint/apiserver/storage"
	crdcontroller "github.com/setpoint-io/setpoint/controllers/crd"
	"github.com/setpoint-io/setpoint/raftstore/raftstoretest"
	"github.com/setpoint-io/setpoint/raftstore/state"
)

func cachesOf(t *testing.T, store *storage.Store, warm func(informers.SharedInformerFactory) error) *caches {
	t.Helper()
	c, err := newCaches(fake.NewSimpleClientset(), store, warm)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// cachedServer has storage and caches alone.
func cachedServer(t *testing.T) *Server {
	t.Helper()
	s := &Server{config: ServerConfig{Logger: slog.New(slog.NewTextHandler(t.Output(), nil))}}
	s.storage = storage.New(raftstoretest.NewLocal(state.Options{}), kinds.NewScheme(), kinds.All())
	s.caches = cachesOf(t, s.storage, s.warm)
	s.aggregation = aggregation.New(aggregation.Config{Store: s.storage})
	var err error
	if s.custom, err = crd.New(crd.Config{Storage: s.storage}); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestWhatEveryServerKeeps is the price of a write on a server that does not lead. A
// kind more on this list is a decoding more for each of its objects.
func TestWhatEveryServerKeeps(t *testing.T) {
	want := []string{
		"apiservices.apiregistration.k8s.io", "certificatesigningrequests.certificates.k8s.io", "clusterroles.rbac.authorization.k8s.io",
		"customresourcedefinitions.apiextensions.k8s.io", "deployments.apps", "endpointslices.discovery.k8s.io",
		"events", "flowschemas.flowcontrol.apiserver.k8s.io", "kube-root-ca.crt", "leases.coordination.k8s.io",
		"mutatingadmissionpolicies.admissionregistration.k8s.io", "mutatingadmissionpolicybindings.admissionregistration.k8s.io",
		"mutatingwebhookconfigurations.admissionregistration.k8s.io", "namespaces", "nodes",
		"persistentvolumeclaims", "persistentvolumes", "poddisruptionbudgets.policy", "pods", "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io", "replicasets.apps", "replicationcontrollers", "serviceaccounts", "services", "statefulsets.apps",
		"validatingadmissionpolicies.admissionregistration.k8s.io", "validatingadmissionpolicybindings.admissionregistration.k8s.io",
		"validatingwebhookconfigurations.admissionregistration.k8s.io", "volumeattributesclasses.storage.k8s.io",
	}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(cachedServer(t).caches.all()))); diff != "" {
		t.Error(diff)
	}
}

// TestInformersBeginWithAList: nothing but the name of a method tells client-go.
func TestInformersBeginWithAList(t *testing.T) {
	if !watchlist.DoesClientNotSupportWatchListSemantics(&tableLister{}) {
		t.Error("client-go would stream them")
	}
}

// TestBundlesAreTheOnlyConfigMaps: controllers that keep one ConfigMap of each
// namespace do not make all servers keep the others.
func TestBundlesAreTheOnlyConfigMaps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := cachedServer(t)
		ctx, cancel := context.WithCancel(t.Context())
		s.caches.StartWithContext(ctx)
		defer s.caches.Shutdown()
		defer cancel()
		for _, name := range []string{"before", "kube-root-ca.crt"} {
			writeConfigMap(t, s.storage, name)
		}
		synctest.Wait()
		writeConfigMap(t, s.storage, "after")
		synctest.Wait()
		if diff := cmp.Diff([]string{"n/kube-root-ca.crt"}, s.caches.bundles.GetStore().ListKeys()); diff != "" {
			t.Error(diff)
		}
	})
}

// TestMonitorsKnowEveryKindForOneTerm: what was written before the term and during
// it, of kinds that no cache has and of those that one has.
func TestMonitorsKnowEveryKindForOneTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := cachedServer(t)
		writeConfigMap(t, s.storage, "before")
		term, end := context.WithCancel(t.Context())
		m := s.newMonitors(term, nil) // no other server is there to be asked
		synctest.Wait()
		writeConfigMap(t, s.storage, "during")
		synctest.Wait()
		all := m.all()
		for gvr := range tables(s.storage) {
			if all[gvr] == nil {
				t.Errorf("nobody watches %s", gvr)
			}
		}
		if all[crdcontroller.Resource] != s.caches.kinds[crdcontroller.Resource] {
			t.Error("definitions are watched twice")
		}
		store := all[corev1.SchemeGroupVersion.WithResource("configmaps")].GetStore()
		if diff := cmp.Diff([]string{"n/before", "n/during"}, slices.Sorted(slices.Values(store.ListKeys()))); diff != "" {
			t.Error(diff)
		}
		for _, o := range store.List() {
			if _, brief := o.(*metav1.PartialObjectMetadata); !brief {
				t.Errorf("a whole %T is kept", o)
			}
		}
		end()
		m.wg.Wait()
	})
}
