package owntraffic

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/setpoint-io/setpoint/agent/net/network"
)

// world is a network that writes down what it is told, and a resolver.
type world struct {
	mu    sync.Mutex
	names map[string]string
	lists []string
	fails bool
}

// set changes it while a Keeper looks at it.
func (w *world) set(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}

var errTest = errors.New("not now")

func (w *world) tell(all []network.ServiceAddress) error {
	var texts []string
	for _, a := range all {
		texts = append(texts, fmt.Sprintf("%d %s", a.Protocol, a.Address))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lists = append(w.lists, strings.Join(texts, ", "))
	if w.fails {
		return errTest
	}
	return nil
}

func (w *world) resolve(_ context.Context, host string) ([]netip.Addr, error) {
	if ip, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{ip}, nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if ip, err := netip.ParseAddr(w.names[host]); err == nil {
		return []netip.Addr{ip}, nil
	}
	return nil, errTest
}

// next is the list that was told since, "" if there was none, or several.
func (w *world) next() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	lists := w.lists
	w.lists = nil
	return strings.Join(lists, " | ")
}

func start(t *testing.T, w *world, servers ...string) *Keeper {
	k := New(Config{
		Servers: servers, Ports: []Port{TCP(10250), UDP(8472)}, Tell: w.tell, Resolve: w.resolve, Logger: slog.New(slog.DiscardHandler),
	})
	k.Look(t.Context())
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); k.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	return k
}

// pass lets time pass, and what it brings end.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

const ofPorts = "17 0.0.0.0:8472, 6 0.0.0.0:10250, %s17 [::]:8472, 6 [::]:10250"

func TestTheListBeforeAnybodyHasAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{names: map[string]string{"server1": "::ffff:10.0.0.1"}}
		start(t, w, "server1:6443", "10.0.0.2:6444", "server3:6443", "bad")
		want := "6 0.0.0.0:6443, 6 0.0.0.0:6444, 17 0.0.0.0:8472, 6 0.0.0.0:10250, 6 10.0.0.1:6443, 6 10.0.0.2:6444, " +
			"6 [::]:6443, 6 [::]:6444, 17 [::]:8472, 6 [::]:10250"
		if got := w.next(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	})
}

func TestTheListFollowsNamesNodesAndServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{names: map[string]string{}}
		k := start(t, w, "server1:6443")
		expect := func(what, want string) {
			t.Helper()
			synctest.Wait()
			if got := w.next(); got != want {
				t.Errorf("%s: got  %s\nwant %s", what, got, want)
			}
		}
		expect("nothing is known", fmt.Sprintf(ofPorts, ""))
		pass(3 * lookInterval)
		expect("nothing is new", "")
		k.Nodes([]netip.Addr{netip.MustParseAddr("10.0.0.9")})
		expect("a node", fmt.Sprintf(ofPorts, "17 10.0.0.9:8472, 6 10.0.0.9:10250, "))
		k.Nodes(nil)
		expect("it has gone", fmt.Sprintf(ofPorts, ""))
		w.set(func() { w.names["server1"] = "10.0.0.1" })
		pass(lookInterval + 1)
		const one = "6 0.0.0.0:6443, 17 0.0.0.0:8472, 6 0.0.0.0:10250, 6 10.0.0.1:6443, 6 [::]:6443, 17 [::]:8472, 6 [::]:10250"
		expect("the name is known", one)
		w.set(func() { delete(w.names, "server1") })
		pass(lookInterval)
		expect("the name is not known any more", "")
		k.Servers([]netip.AddrPort{netip.MustParseAddrPort("10.0.0.1:6443")})
		expect("the API says the same", "")
		k.Gossip([]string{"10.0.0.1:7946", "server1:7946"})
		expect("servers gossip", "6 0.0.0.0:6443, 6 0.0.0.0:7946, 17 0.0.0.0:7946, 17 0.0.0.0:8472, 6 0.0.0.0:10250, 6 10.0.0.1:6443, "+
			"6 10.0.0.1:7946, 17 10.0.0.1:7946, 6 [::]:6443, 6 [::]:7946, 17 [::]:7946, 17 [::]:8472, 6 [::]:10250")
	})
}

func TestWhatTheNetworkRefusedIsToldAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{fails: true}
		start(t, w)
		synctest.Wait()
		w.next()
		pass(lookInterval + 1)
		if got := w.next(); got != fmt.Sprintf(ofPorts, "") {
			t.Errorf("after a failure: %s", got)
		}
		w.set(func() { w.fails = false })
		pass(lookInterval)
		w.next()
		pass(lookInterval)
		if got := w.next(); got != "" {
			t.Errorf("after success: %s", got)
		}
	})
}
