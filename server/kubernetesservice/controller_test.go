package kubernetesservice

import (
	"net/netip"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controllers/reconcile/reconciletest"
	"github.com/setpoint-io/setpoint/internal/reserved"
)

func TestPodsAreToldWhereTheAPIIs(t *testing.T) {
	for name, c := range map[string]struct {
		servers []Server
		want    map[int32][]string
	}{
		"three machines": {[]Server{{Endpoint: "10.0.0.2:6443"}, {Endpoint: "10.0.0.1:6443"}, {Endpoint: "10.0.0.3:6443"}},
			map[int32][]string{6443: {"10.0.0.1", "10.0.0.2", "10.0.0.3"}}},
		"one machine": {[]Server{{Endpoint: "127.0.0.1:6443", Addresses: []string{"192.0.2.2"}}, {Endpoint: "127.0.0.1:6444", Addresses: []string{"192.0.2.2"}}},
			map[int32][]string{6443: {"192.0.2.2"}, 6444: {"192.0.2.2"}}},
		"loopback alone": {[]Server{{Endpoint: "127.0.0.1:6443"}}, map[int32][]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := addressesOf(c.servers)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// slicesIn are the addresses in the slices of the Service.
func slicesIn(t *testing.T, w *reconciletest.World) (all []string) {
	t.Helper()
	list, err := w.Client.DiscoveryV1().EndpointSlices("default").List(t.Context(), metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + Name})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range list.Items {
		for _, e := range s.Endpoints {
			all = append(all, s.Name+" "+e.Addresses[0])
		}
	}
	return all
}

// TestItTellsWhatServersHave: nobody takes their ports, also while one does not answer.
func TestItTellsWhatServersHave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := reconciletest.New(t)
		var servers atomic.Pointer[[]Server]
		told := func(want string) {
			t.Helper()
			time.Sleep(membershipPollInterval)
			w.Settle()
			slice, err := w.Client.DiscoveryV1().EndpointSlices("default").Get(t.Context(), Name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if got := reserved.TextOf(reserved.ServersOf(slice)); got != want {
				t.Errorf("%s, want %s", got, want)
			}
		}
		servers.Store(&[]Server{
			{Name: "b", Endpoint: "192.0.2.2:7443", Addresses: []string{"2001:db8::2", "127.0.0.1"}, Gossip: "192.0.2.2:9000"},
			{Name: "a", Endpoint: "192.0.2.1:6443"},
		})
		w.Run(New(func() []Server { return *servers.Load() }, address, 6443))
		told(`[{"name":"a","addresses":["192.0.2.1"],"port":6443},{"name":"b","addresses":["192.0.2.2","2001:db8::2"],"port":7443,"gossip":9000}]`)
		servers.Store(&[]Server{{Name: "b", Endpoint: "192.0.2.2:8443"}})
		told(`[{"name":"b","addresses":["192.0.2.2"],"port":8443,"gossip":9000}]`)
		w.Writes()
		time.Sleep(time.Hour)
		if writes := w.Writes(); len(writes) > 0 {
			t.Errorf("an unchanged world was written to: %v", writes)
		}
	})
}

// TestANameThatIsNotFound: the server keeps the addresses that it had, beside those that are found.
func TestANameThatIsNotFound(t *testing.T) {
	former := []reserved.Server{{Name: "a", Addresses: []string{"192.0.2.1"}}, {Name: "b", Addresses: []string{"192.0.2.2", "2001:db8::2"}}}
	const noName = "no name" // no resolver is asked for it
	for name, test := range map[string]struct {
		server Server
		want   []string
	}{
		"all are found":   {Server{Name: "b", Endpoint: "192.0.2.3:6443"}, []string{"192.0.2.3"}},
		"one is not":      {Server{Name: "b", Endpoint: "192.0.2.3:6443", Addresses: []string{noName}}, []string{"192.0.2.2", "192.0.2.3", "2001:db8::2"}},
		"none is":         {Server{Name: "b", Endpoint: noName + ":6443"}, []string{"192.0.2.2", "2001:db8::2"}},
		"of a new server": {Server{Name: "c", Endpoint: "192.0.2.3:6443", Addresses: []string{noName}}, []string{"192.0.2.3"}},
	} {
		if got := addressesNow(t.Context(), test.server, former); !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

var address = netip.MustParseAddr("172.30.0.1")

func TestTheServiceFollowsTheServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := reconciletest.New(t)
		var servers atomic.Pointer[[]Server]
		servers.Store(&[]Server{{Endpoint: "192.0.2.2:6443"}, {Endpoint: "192.0.2.2:6444"}})
		w.Run(New(func() []Server { return *servers.Load() }, address, 6443))
		w.Settle()
		if diff := cmp.Diff([]string{"kubernetes 192.0.2.2", "kubernetes-6444 192.0.2.2"}, slicesIn(t, w)); diff != "" {
			t.Error(diff)
		}
		w.Writes()
		time.Sleep(time.Hour)
		if writes := w.Writes(); len(writes) > 0 {
			t.Errorf("an unchanged world was written to: %v", writes)
		}
		if err := w.Client.CoreV1().Services("default").Delete(t.Context(), Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		w.Settle()
		service, err := w.Client.CoreV1().Services("default").Get(t.Context(), Name, metav1.GetOptions{})
		if err != nil || service.Spec.ClusterIP != address.String() {
			t.Errorf("%v, %v", service, err)
		}
		servers.Store(&[]Server{{Endpoint: "192.0.2.3:6443"}})
		time.Sleep(membershipPollInterval)
		w.Settle()
		if diff := cmp.Diff([]string{"kubernetes 192.0.2.3"}, slicesIn(t, w)); diff != "" {
			t.Error(diff)
		}
		endpoints, err := w.Client.CoreV1().Endpoints("default").Get(t.Context(), Name, metav1.GetOptions{})
		if err != nil || len(endpoints.Subsets) != 1 || endpoints.Subsets[0].Addresses[0].IP != "192.0.2.3" {
			t.Errorf("%v, %v", endpoints, err)
		}
	})
}
