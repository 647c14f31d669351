package network

import (
	"net"
	"net/netip"
	"testing"

	"github.com/setpoint-io/setpoint/agent/network/ownaddress"
)

// TestPodsReachAnAddressOfTheMachine: what listens there answers pods and the machine, from that address.
func TestPodsReachAnAddressOfTheMachine(t *testing.T) {
	n := newNetwork(t)
	pod := startPod(t, n, "one")
	var own ownaddress.Holder
	first, second := netip.MustParseAddr("10.197.0.9"), netip.MustParseAddr("10.197.0.10")
	for _, address := range []netip.Addr{first, second, second} {
		if err := own.Hold(address); err != nil {
			t.Fatal(err)
		}
		if held := own.Held(); held != address {
			t.Errorf("held %s, want %s", held, address)
		}
	}
	listener, err := net.Listen("tcp", "10.197.0.10:80")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go answerWithPeer(listener)
	if got := pod.say("10.197.0.10:80"); got != "10.199.7.2" {
		t.Errorf("from a pod: %s", got)
	}
	if got := ask("10.197.0.10:80"); got != "10.197.0.10" {
		t.Errorf("from the machine: %s", got)
	}
	if err := own.Hold(netip.Addr{}); err != nil || own.Held().IsValid() {
		t.Errorf("%v, still held: %s", err, own.Held())
	}
	if _, err := net.Listen("tcp", "10.197.0.10:81"); err == nil {
		t.Error("the machine still has the address")
	}
}

// answerWithPeer says to each client where it comes from.
func answerWithPeer(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		_, _ = conn.Write([]byte(conn.RemoteAddr().(*net.TCPAddr).IP.String()))
		conn.Close()
	}
}
