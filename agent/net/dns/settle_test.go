package dns

import (
	"log/slog"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// whileLooking is a Network that is asked what it holds between a look at the Services and the pause after it.
type whileLooking struct {
	held
	asked atomic.Int32
	then  func()
}

func (w *whileLooking) Held() netip.Addr {
	if w.asked.Add(1) == 6 {
		w.then()
	}
	return w.held.Held()
}

// TestServicesThatBecomeKnownWhileALookIsUnderWay are looked at soon. The pause after a look was that of known Services then.
func TestServicesThatBecomeKnownWhileALookIsUnderWay(t *testing.T) {
	client := fake.NewClientset(own("127.0.53.11"))
	listed, settled := make(chan struct{}), make(chan struct{})
	client.PrependReactor("list", "endpointslices", func(clienttesting.Action) (bool, runtime.Object, error) {
		<-listed
		return false, nil, nil
	})
	network := &whileLooking{}
	factory := informers.NewSharedInformerFactory(client, 0)
	n := &node{t: t, client: client, address: "127.0.53.11:15353"}
	n.server = newServer(Config{
		Informers: factory, Client: client, Network: network, Domain: "cluster.local", Ports: Ports{DNS: 15353, Metrics: 19153},
		Settled: func() { close(settled) }, Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	network.then = func() {
		close(listed)
		factory.WaitForCacheSync(t.Context().Done())
	}
	factory.StartWithContext(t.Context())
	n.run()
	select {
	case <-settled:
	case <-time.After(lookInterval - time.Second):
		t.Error("they are looked at as late as those that change")
	}
}
