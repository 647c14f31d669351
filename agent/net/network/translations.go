package network

import (
	"errors"
	"net/netip"
	"sync/atomic"

	"github.com/setpoint-io/setpoint/agent/net/network/nft"
)

// TranslationConfig of a Translation. The zero value is usable.
type TranslationConfig struct {
	// Services covers the cluster addresses of Services: those that nobody has are refused.
	Services netip.Prefix
	// Bridge is the one of the pods; only LoopbackPorts needs it.
	Bridge string
	// LoopbackPorts opens node ports on 127.0.0.1 too. Their endpoints must be pods of this machine.
	LoopbackPorts bool
}

// Translation makes the addresses of Services lead somewhere, for pods and for the machine itself: in a table of IPv4 and, in a
// cluster that has both, one of IPv6.
type Translation struct {
	inet, inet6 translation
	dual        atomic.Bool // the table of IPv6 is wanted
}

// NewTranslation changes nothing before Replace.
func NewTranslation(config TranslationConfig) *Translation {
	// The kernel answers nobody at ::1 whose packet has left the loopback interface: there are no node ports there.
	return &Translation{inet: translation{family: inet, config: config}, inet6: translation{family: inet6}}
}

// SetRanges says where pods have their addresses from: others are outside; and where Services have theirs. It holds from the next
// Replace on, for which Damaged asks.
func (t *Translation) SetRanges(ranges Ranges) {
	t.inet.setRanges(ranges.Pods, ranges.Services)
	t.inet6.setRanges(ranges.Pods6, ranges.Services6)
	t.dual.Store(ranges.dual())
}

// SetPods says which ranges this node's own pods have. Those of other nodes, which come with their own addresses, are outside then: this
// node is not on the way of what answers them. It holds as SetRanges does.
func (t *Translation) SetPods(pods, pods6 netip.Prefix) {
	t.inet.setPods(pods)
	t.inet6.setPods(pods6)
}

// Replace makes new tables, each in one transaction: no packet meets half of it. Connections that are there stay with their
// endpoint, and clients with theirs; what is sent by UDP leaves an endpoint that is gone.
func (t *Translation) Replace(services []Service) error {
	err := t.inet.replace(servicesOf(inet, services))
	if !t.dual.Load() { // an earlier life of the node may have had both
		return errors.Join(err, nft.DropTable(inet6.Tables, translationTable))
	}
	return errors.Join(err, t.inet6.replace(servicesOf(inet6, services)))
}

// Change replaces some Services and removes others, in one transaction for each family. After an error only Replace helps.
func (t *Translation) Change(now []Service, gone []ServiceAddress) error {
	err := t.inet.change(servicesOf(inet, now), addressesOf(inet, gone))
	if !t.dual.Load() {
		return err
	}
	return errors.Join(err, t.inet6.change(servicesOf(inet6, now), addressesOf(inet6, gone)))
}

// Damaged tells whether somebody else has changed the rules of a table, or they are of other ranges. It costs one question for each
// family to the kernel while nobody changes anything.
func (t *Translation) Damaged() (bool, error) {
	damaged, err := t.inet.damaged()
	if damaged || err != nil || !t.dual.Load() {
		return damaged, err
	}
	return t.inet6.damaged()
}

func servicesOf(f family, all []Service) (some []Service) {
	for _, s := range all {
		if f.Has(s.Address.Addr()) {
			some = append(some, s)
		}
	}
	return some
}

func addressesOf(f family, all []ServiceAddress) (some []ServiceAddress) {
	for _, a := range all {
		if f.Has(a.Address.Addr()) {
			some = append(some, a)
		}
	}
	return some
}
