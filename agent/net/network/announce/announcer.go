package announce

import (
	"context"
	"log/slog"
	"net/netip"
	"sync"
	"time"
)

// announceInterval is how often an address is announced without being asked for.
const announceInterval = 10 * time.Second

// Announcer answers ARP and NDP for addresses that are no interface's: packets to them come here and are translated.
type Announcer struct{ first, second *speaker }

// New announces on the links of the node's addresses, while Run runs. The second, of IPv6, is invalid where there is none.
func New(nodeIP, nodeIP6 netip.Addr, logger *slog.Logger) *Announcer {
	return &Announcer{newSpeaker(arp{}, nodeIP, logger), newSpeaker(ndp{}, nodeIP6, logger)}
}

// Set replaces the addresses. New ones are announced at once.
func (a *Announcer) Set(addresses []netip.Addr) {
	var first, second []netip.Addr
	for _, ip := range addresses {
		if ip.Is4() {
			first = append(first, ip)
		} else {
			second = append(second, ip)
		}
	}
	a.first.set(first)
	a.second.set(second)
}

// Run answers until ctx ends; of each family it waits for the first address before it opens a socket.
func (a *Announcer) Run(ctx context.Context) {
	var children sync.WaitGroup
	defer children.Wait()
	children.Go(func() { a.first.run(ctx) })
	children.Go(func() { a.second.run(ctx) })
}
