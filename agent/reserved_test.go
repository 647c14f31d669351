package agent

import (
	"fmt"
	"net/netip"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/setpoint-io/setpoint/agent/net/router"
	"github.com/setpoint-io/setpoint/internal/reserved"
)

// TestWhereServersAre: the leader says so, and nobody who can change the Service of the API.
func TestWhereServersAre(t *testing.T) {
	var told []netip.AddrPort
	a := &agent{Config: Config{Ingress: router.Ports{HTTP: 80}, SetServers: func(all []netip.AddrPort) { told = all }}, book: reserved.New()}
	factory := informers.NewSharedInformerFactory(fake.NewClientset(), 0)
	a.keepBook(factory, factory)
	slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "kubernetes", Annotations: map[string]string{reserved.Annotation: reserved.TextOf([]reserved.Server{
			{Name: "b", Addresses: []string{"192.0.2.2", "2001:db8::2"}, Port: 7443, Gossip: 7946}, {Name: "a", Addresses: []string{"192.0.2.1"}, Port: 6443},
		})},
	}}
	a.book.SetServers(reserved.OfServers(slice))
	if got := fmt.Sprint(told); got != "[192.0.2.1:6443 192.0.2.2:7443 [2001:db8::2]:7443]" {
		t.Error(got)
	}
	a.book.SetServers(nil)
	if len(told) > 0 {
		t.Errorf("the servers are gone: %v", told)
	}
}
