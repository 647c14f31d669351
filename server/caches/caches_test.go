package caches

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/util/watchlist"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-io/setpoint/apiserver/kinds"
	"github.com/setpoint-io/setpoint/apiserver/storage"
	"github.com/setpoint-io/setpoint/controllers/reconcile"
	"github.com/setpoint-io/setpoint/raftstore/raftstoretest"
	"github.com/setpoint-io/setpoint/raftstore/state"
)

func cachesOf(t *testing.T, store *storage.Store, reads ...reconcile.Read) *Caches {
	t.Helper()
	c, err := New(fake.NewSimpleClientset(), store, reads, slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// warmed are a server's caches, over storage in memory.
func warmed(t *testing.T) (*Caches, *storage.Store) {
	t.Helper()
	store := storage.New(raftstoretest.NewLocal(state.Options{}), kinds.NewScheme(), kinds.All())
	return cachesOf(t, store, Reads(store.Serves)...), store
}

// TestWhatEveryServerKeeps is the price of a write on a server that does not lead. A
// kind more on this list is a decoding more for each of its objects.
func TestWhatEveryServerKeeps(t *testing.T) {
	want := []string{
		"apiservices.apiregistration.k8s.io", "certificatesigningrequests.certificates.k8s.io", "clusterroles.rbac.authorization.k8s.io", "controllerrevisions.apps", "cronjobs.batch",
		"csidrivers.storage.k8s.io", "csinodes.storage.k8s.io", "csistoragecapacities.storage.k8s.io", "customresourcedefinitions.apiextensions.k8s.io", "daemonsets.apps", "deployments.apps", "deviceclasses.resource.k8s.io", "devicetaintrules.resource.k8s.io", "endpoints", "endpointslices.discovery.k8s.io",
		"events", "flowschemas.flowcontrol.apiserver.k8s.io", "horizontalpodautoscalers.autoscaling", "ingressclasses.networking.k8s.io", "ingresses.networking.k8s.io", "ipaddresses.networking.k8s.io", "jobs.batch", "kube-root-ca.crt", "leases.coordination.k8s.io",
		"mutatingadmissionpolicies.admissionregistration.k8s.io", "mutatingadmissionpolicybindings.admissionregistration.k8s.io",
		"mutatingwebhookconfigurations.admissionregistration.k8s.io", "namespaces", "nodes",
		"persistentvolumeclaims", "persistentvolumes", "poddisruptionbudgets.policy", "pods", "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io", "replicasets.apps", "replicationcontrollers", "resourceclaims.resource.k8s.io", "resourceclaimtemplates.resource.k8s.io", "resourcequotas", "resourceslices.resource.k8s.io", "serviceaccounts", "servicecidrs.networking.k8s.io", "services", "statefulsets.apps", "storageclasses.storage.k8s.io",
		"storageversionmigrations.storagemigration.k8s.io",
		"validatingadmissionpolicies.admissionregistration.k8s.io", "validatingadmissionpolicybindings.admissionregistration.k8s.io",
		"validatingwebhookconfigurations.admissionregistration.k8s.io", "volumeattachments.storage.k8s.io", "volumeattributesclasses.storage.k8s.io",
	}
	c, _ := warmed(t)
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(c.all()))); diff != "" {
		t.Error(diff)
	}
}

// TestSynced: /readyz says so when the caches are filled, and not before.
func TestSynced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := warmed(t)
		if err := c.Synced(t.Context()); err == nil {
			t.Error("caches that nobody has started are filled")
		}
		ctx, cancel := context.WithCancel(t.Context())
		c.StartWithContext(ctx)
		defer c.Shutdown()
		defer cancel()
		synctest.Wait()
		if err := c.Synced(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestInformersBeginWithAList: nothing but the name of a method tells client-go.
func TestInformersBeginWithAList(t *testing.T) {
	if !watchlist.DoesClientNotSupportWatchListSemantics(&Lister{}) {
		t.Error("client-go would stream them")
	}
}

// TestBundlesAreTheOnlyConfigMaps: controllers that keep one ConfigMap of each
// namespace do not make all servers keep the others.
func TestBundlesAreTheOnlyConfigMaps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, store := warmed(t)
		ctx, cancel := context.WithCancel(t.Context())
		c.StartWithContext(ctx)
		defer c.Shutdown()
		defer cancel()
		for _, name := range []string{"before", "kube-root-ca.crt"} {
			writeConfigMap(t, store, name)
		}
		synctest.Wait()
		writeConfigMap(t, store, "after")
		synctest.Wait()
		if diff := cmp.Diff([]string{"n/kube-root-ca.crt"}, c.Informer(corev1.SchemeGroupVersion.WithResource("configmaps"), "kube-root-ca.crt").GetStore().ListKeys()); diff != "" {
			t.Error(diff)
		}
	})
}
