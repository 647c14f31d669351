package loadbalancer

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/internal/reserved"
	"github.com/setpoint-io/setpoint/internal/shares"
)

// poolWorld is a pool of one IPv4 and one IPv6 range whose Services come, go and change, with what was given to them.
type poolWorld struct {
	source   Source
	random   *rand.Rand
	made     int
	services []*corev1.Service
	quotas   map[string]bool
	// unbound are those that may have more than a share: somebody said a number once.
	unbound map[string]bool
}

// elsewhere is not in the pool: who asks for it gives back what it has.
const elsewhere = "192.0.2.9"

// namespaces that are tenants have letters.
var namespaces = []string{"a", "b", "c", "d", "kube-system"}

// change makes, takes away or changes something.
func (w *poolWorld) change() {
	switch namespace := namespaces[w.random.IntN(len(namespaces))]; w.random.IntN(8) {
	case 0, 1, 2:
		w.create(namespace)
	case 3, 4:
		if len(w.services) > 0 {
			at := w.random.IntN(len(w.services))
			w.services = slices.Delete(w.services, at, at+1)
		}
	case 5:
		if namespace = namespaces[w.random.IntN(2)]; w.random.IntN(3) > 0 { // the others never have one
			break
		}
		w.quotas[namespace] = !w.quotas[namespace]
		w.unbound[namespace] = true
	case 6:
		if len(w.services) > 0 {
			s := w.services[w.random.IntN(len(w.services))]
			s.Spec.IPFamilies, s.Spec.LoadBalancerIP = w.families(), []string{"", "", elsewhere}[w.random.IntN(3)]
		}
	default: // several at once, before anybody looks
		for range 2 + w.random.IntN(6) {
			w.create(namespaces[w.random.IntN(len(namespaces))])
		}
	}
}

func (w *poolWorld) create(namespace string) {
	w.made++
	s := balanced(fmt.Sprint("s", w.made), -w.made, families(w.families()...))
	s.Namespace = namespace
	w.services = append(w.services, s)
}

func (w *poolWorld) families() []corev1.IPFamily {
	both := []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}
	return [][]corev1.IPFamily{both[:1], both[1:], both}[w.random.IntN(3)]
}

// decide plans, and gives the Services what was decided.
func (w *poolWorld) decide() []decision {
	decisions := w.source.plan(world{w.services, nil, onB, isSelf, func(n string) bool { return w.quotas[n] }, reserved.Of(nil)})
	for _, d := range decisions {
		d.service.Status.LoadBalancer.Ingress = nil
		for _, a := range d.addresses {
			has(a)(d.service)
		}
	}
	return decisions
}

// held are the addresses of a family that Services have: of each namespace, and all.
func (w *poolWorld) held(family corev1.IPFamily) (of map[string]int, all int) {
	of = map[string]int{}
	for _, s := range w.services {
		for _, i := range s.Status.LoadBalancer.Ingress {
			if strings.Contains(i.IP, ":") == (family == corev1.IPv6Protocol) {
				of[s.Namespace]++
				all++
			}
		}
	}
	return of, all
}

// TestSharesOfAPoolInManyWorlds: whatever comes, goes and changes, no address belongs to two Services; who has one keeps it; nobody gets
// one that the rule does not give to its namespace, unless a quota says a number or the namespace is kube-system; and nobody lacks one
// that it may have, so what is given back is never lost. Who is refused is told the numbers.
func TestSharesOfAPoolInManyWorlds(t *testing.T) {
	refusals := map[string]int{}
	for seed := range uint64(100) {
		source, err := Parse("198.51.100.8/30,2001:db8:1::40/125")
		if err != nil {
			t.Fatal(err)
		}
		w := &poolWorld{
			source: source, random: rand.New(rand.NewPCG(seed, 1)),
			quotas: map[string]bool{}, unbound: map[string]bool{"kube-system": true},
		}
		for step := range 60 {
			w.change()
			before := map[string]string{}
			for _, s := range w.services {
				before[s.Name] = fmt.Sprint(s.Spec.IPFamilies, s.Status.LoadBalancer.Ingress)
			}
			decisions := w.decide()
			w.check(t, decisions, refusals)
			for _, d := range w.decide() { // nothing has changed
				first := decisions[slices.IndexFunc(decisions, func(o decision) bool { return o.service == d.service })]
				if !slices.Equal(first.addresses, d.addresses) {
					t.Errorf("%s: %v, and again %v", d.service.Name, first.addresses, d.addresses)
				}
			}
			if t.Failed() {
				t.Fatalf("seed %d, step %d: before %v", seed, step, before)
			}
		}
	}
	if refusals["PoolShare"] < 100 || refusals["PoolExhausted"] < 100 {
		t.Errorf("the worlds are too quiet: %v", refusals)
	}
}

func (w *poolWorld) check(t *testing.T, decisions []decision, refusals map[string]int) {
	holders := map[string]string{}
	for _, d := range decisions {
		for _, a := range d.addresses {
			if other := holders[a]; other != "" {
				t.Errorf("%s belongs to %s and %s", a, other, d.service.Name)
			}
			holders[a] = d.service.Name
		}
	}
	for _, family := range []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol} {
		of, all := w.held(family)
		for namespace, n := range of {
			if most := (w.source.size(family) + 1) / 2; n > most && !w.unbound[namespace] {
				t.Errorf("namespace %s has %d of %s, and %d are taken", namespace, n, family, all)
			}
		}
	}
	for _, d := range decisions {
		if len(d.addresses) == len(d.service.Spec.IPFamilies) {
			continue
		}
		refusals[d.reason]++
		if !slices.ContainsFunc(d.service.Spec.IPFamilies, func(f corev1.IPFamily) bool { return w.mayLack(d, f) }) {
			t.Errorf("%s/%s lacks an address: %s %s", d.service.Namespace, d.service.Name, d.reason, d.message)
		}
	}
}

// mayLack reports whether a Service has rightly no address of the family, and is told so.
func (w *poolWorld) mayLack(d decision, family corev1.IPFamily) bool {
	of, all := w.held(family)
	limits, namespace := shares.Limits{All: w.source.size(family)}, d.service.Namespace
	switch d.reason {
	case "AddressNotInPool":
		return d.service.Spec.LoadBalancerIP == elsewhere
	case "PoolExhausted":
		return all == limits.All
	case "PoolShare":
		// Later Services may have got some that were left since, so the message's other number may be smaller.
		told := fmt.Sprintf("%d addresses of %s belong to namespace %s, which is its share while ", of[namespace], family, namespace)
		return namespace != "kube-system" && !w.quotas[namespace] && !limits.Fits(of[namespace], all, 1) && strings.Contains(d.message, told)
	}
	return false
}
