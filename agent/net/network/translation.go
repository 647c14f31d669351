package network

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"sync"

	"github.com/setpoint-io/setpoint/agent/net/network/nft"
)

const translationTable = "setpoint-services"

// translation is the table of one family. mu guards the rest, which is what the kernel was told: current is nil before the first
// replace and after a failure.
type translation struct {
	family family
	config TranslationConfig
	mu     sync.Mutex
	// cluster is the range from which nobody is outside: that of pods, once it is known.
	cluster, pods netip.Prefix
	current       map[ServiceAddress]Service
	// outdated: the table was made with other ranges.
	outdated bool
	// own are the addresses that are not translated.
	own []ServiceAddress
	// here counts the Services of each pod of this node.
	here map[netip.Addr]int
	// spreads and maps are the chains and the maps of endpoints that are there. Of a chain it is counted how many elements lead there.
	spreads map[spread]int
	maps    map[int]bool
	rules   int
	// generation is the kernel's count of changes after the last one of ours.
	generation uint32
}

func (t *translation) setRanges(pods, services netip.Prefix) {
	t.mu.Lock()
	defer t.mu.Unlock()
	inside := cmp.Or(t.pods, pods)
	t.outdated = t.outdated || inside != t.cluster || services != t.config.Services
	t.cluster, t.config.Services = inside, services
}

func (t *translation) setPods(pods netip.Prefix) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if pods.IsValid() {
		t.outdated = t.outdated || pods != t.cluster
		t.pods, t.cluster = pods, pods
	}
}

// ErrNotReplaced is what Change returns when the table's content is not known: Replace comes first.
var ErrNotReplaced = errors.New("the Services of the network are not known")

// replace makes a new table in one transaction: no packet meets half of it. Connections that are there stay with their
// endpoint, and clients with theirs; what is sent by UDP leaves an endpoint that is gone.
func (t *translation) replace(services []Service) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.current = nil
	conn, err := nft.Open()
	if err != nil {
		return err
	}
	clients := rememberedClients(conn, t.family, placesOf(services))
	rules := newRuleset(conn, t.family, translationTable)
	err = errors.Join(rules.frame(t.config, t.cluster), rules.addOwn(t.own), conn.SetAddElements(rules.affinitySet(), clients))
	if err != nil {
		return tableError(err)
	}
	t.here, t.spreads, t.maps, t.rules = map[netip.Addr]int{}, map[spread]int{}, map[int]bool{}, 0
	if err := t.commit(rules, nil, services); err != nil {
		return err
	}
	t.outdated = false
	t.current = make(map[ServiceAddress]Service, len(services))
	for _, s := range services {
		t.current[s.ServiceAddress] = s
	}
	return nil
}

// change replaces some Services and removes others, in one transaction. After an error only replace helps.
func (t *translation) change(now []Service, gone []ServiceAddress) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.current == nil {
		return ErrNotReplaced
	}
	conn, err := nft.Open()
	if err != nil {
		return err
	}
	var before []Service
	for _, s := range now {
		before = append(before, t.current[s.ServiceAddress])
	}
	for _, address := range gone {
		before = append(before, t.current[address])
	}
	current := t.current
	t.current = nil
	rules := t.family.ruleset(conn, translationTable)
	if err := t.commit(rules, before, now); err != nil {
		return err
	}
	for _, address := range gone {
		delete(current, address)
	}
	for _, s := range now {
		current[s.ServiceAddress] = s
	}
	t.current = current
	return nil
}

// commit changes the elements, makes the chains and maps that they need, and removes chains that nothing needs any more. Maps stay: they
// are few.
func (t *translation) commit(rules *ruleset, before, now []Service) error {
	gone, added := difference(before, now)
	t.countHere(before, now, gone, added)
	unused, err := t.countSpreads(rules, gone, added)
	for set, elements := range gone {
		err = errors.Join(err, rules.conn.SetDeleteElements(rules.set(set), keysOf(elements)))
	}
	for set, elements := range added {
		err = errors.Join(err, rules.conn.SetAddElements(rules.set(set), valuesOf(elements)))
	}
	for _, s := range unused {
		rules.removeSpread(s)
	}
	if err != nil {
		return tableError(err)
	}
	if err := rules.conn.Flush(); err != nil {
		return tableError(err)
	}
	t.rules += rules.rules
	t.generation = 0
	if generation, err := nft.Generation(); err == nil {
		t.generation = generation
	}
	return errors.Join(t.family.forgetClients(before, now), t.family.forgetFlows(flowsOf(before, now)))
}

// countSpreads makes the chains to which elements lead for the first time, and finds those to which none leads any more.
func (t *translation) countSpreads(rules *ruleset, gone, added changes) (unused []spread, err error) {
	for s, change := range spreadsOf(gone, added) {
		was := t.spreads[s]
		switch is := was + change; {
		case is == 0:
			delete(t.spreads, s)
			if was > 0 {
				unused = append(unused, s)
			}
		default:
			t.spreads[s] = is
			if was == 0 {
				err = errors.Join(err, t.add(rules, s))
			}
		}
	}
	return unused, err
}

// add makes a chain, and the map of endpoints that it reads.
func (t *translation) add(rules *ruleset, s spread) error {
	var err error
	if !t.maps[s.count] {
		t.maps[s.count] = true
		err = rules.addSet(t.family.endpointsSet(s.count), nil)
	}
	rules.addSpread(s)
	return err
}

// countHere lets pods reach themselves as long as one Service leads to them.
func (t *translation) countHere(before, now []Service, gone, added changes) {
	change := map[netip.Addr]int{}
	for _, s := range before {
		for _, pod := range s.Here {
			change[pod]--
		}
	}
	for _, s := range now {
		for _, pod := range s.Here {
			change[pod]++
		}
	}
	for pod, by := range change {
		was := t.here[pod]
		t.here[pod] += by
		switch is := t.here[pod]; {
		case was == 0 && is > 0:
			added.put(element{set: itselfSet, key: itself(pod)})
		case was > 0 && is == 0:
			gone.put(element{set: itselfSet, key: itself(pod)})
		}
		if t.here[pod] == 0 {
			delete(t.here, pod)
		}
	}
}

// damaged tells whether somebody else has changed the rules of the table, or they are of other ranges. It costs one question to the
// kernel while nobody changes anything.
func (t *translation) damaged() (bool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.current == nil || t.outdated || t.config.LoopbackPorts && !localnet(t.config.Bridge).holds() {
		return true, nil
	}
	now, err := nft.Generation()
	if err != nil || now == t.generation {
		return false, err
	}
	rules, err := countRules(t.family, translationTable)
	if err != nil {
		return false, err
	}
	if rules == t.rules {
		t.generation = now
	}
	return rules != t.rules, nil
}

func tableError(err error) error { return fmt.Errorf("nftables table %s: %w", translationTable, err) }
