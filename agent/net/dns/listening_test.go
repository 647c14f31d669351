package dns

import (
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
)

// TestPortsThatOthersHave are told, and so are those that are open: dnsmasq may have port 53 of all addresses.
func TestPortsThatOthersHave(t *testing.T) {
	const address, taken = "127.0.53.21", "udp 127.0.53.21:15353"
	program, err := net.ListenPacket("udp", "127.0.53.21:15353")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { program.Close() })
	client := fake.NewClientset()
	type news struct {
		socket string
		err    error
	}
	told := make(chan news, 100)
	n := &node{t: t, client: client}
	n.server = newServer(Config{
		Informers: informers.NewSharedInformerFactory(client, 0), Client: client, Network: &held{at: netip.MustParseAddr(address)},
		Domain: "cluster.local", Ports: Ports{DNS: 15353, Metrics: 19153}, Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Listening: func(socket string, err error) { told <- news{socket, err} },
	})
	n.run()
	for range 3 {
		now := <-told
		if now.socket == taken && !errors.Is(now.err, unix.EADDRINUSE) || now.socket != taken && now.err != nil {
			t.Errorf("%s: %v", now.socket, now.err)
		}
	}
}
