package network

import (
	"context"
	"log/slog"
	"net/netip"
	"sync"
	"testing"

	"github.com/setpoint-io/setpoint/agent/network/announce"
)

// TestAnAnnouncedAddressIsReached: a machine of the same link asks who has it.
func TestAnAnnouncedAddressIsReached(t *testing.T) {
	n := newNetwork(t)
	startPod(t, n, "one")
	out := startOutsider(t)
	const vip = "192.0.2.77:80"
	translation := newTranslation(t)
	translate(t, translation, external(tcp(vip, "10.199.7.2:80")))
	announcer := announce.New(netip.MustParseAddr(nodeIP), slog.New(slog.NewTextHandler(t.Output(), nil)))
	ctx, cancel := context.WithCancel(t.Context())
	var children sync.WaitGroup
	children.Go(func() { announcer.Run(ctx) })
	defer children.Wait()
	defer cancel()
	announcer.Set([]netip.Addr{netip.MustParseAddrPort(vip).Addr()})
	if got := out.say(vip); got != gatewayOfTest {
		t.Errorf("announced: %s", got)
	}
}
