package servicecidr

import (
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var now = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

// cidr is a range that is ready and held.
func cidr(name string, prefixes ...string) *serviceCIDR {
	c := &serviceCIDR{ObjectMeta: metav1.ObjectMeta{Name: name, Finalizers: []string{finalizer}}}
	c.Spec.CIDRs = prefixes
	c.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue, Message: "Kubernetes Service CIDR is ready"}}
	return c
}

// deleted is a range whose deletion was asked for so long ago.
func deleted(c *serviceCIDR, ago time.Duration) *serviceCIDR {
	c.DeletionTimestamp = new(metav1.NewTime(now.Add(-ago)))
	return c
}

func edited(c *serviceCIDR, change func(*serviceCIDR)) *serviceCIDR {
	change(c)
	return c
}

func addresses(texts ...string) (all []netip.Addr) {
	for _, text := range texts {
		all = append(all, netip.MustParseAddr(text))
	}
	return all
}

func TestPlan(t *testing.T) {
	const waits, ready = "There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new ServiceCIDR", "Kubernetes Service CIDR is ready"
	a := func() *serviceCIDR { return cidr("a", "10.1.0.0/24") }
	for name, c := range map[string]struct {
		cidr          *serviceCIDR
		others        []*serviceCIDR
		used          []netip.Addr
		add, remove   bool
		status, words string // of the condition that is written
		again         time.Duration
	}{
		"as it should be":       {cidr: a()},
		"new":                   {cidr: &serviceCIDR{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, add: true},
		"new, with a finalizer": {cidr: &serviceCIDR{ObjectMeta: metav1.ObjectMeta{Name: "a", Finalizers: []string{finalizer}}}, status: "True", words: ready},
		"without a finalizer":   {cidr: edited(a(), func(c *serviceCIDR) { c.Finalizers = []string{"example.com/f"} }), add: true},
		"with another text":     {cidr: edited(a(), func(c *serviceCIDR) { c.Status.Conditions[0].Message = "ready" }), status: "True", words: ready},
		"with a reason":         {cidr: edited(a(), func(c *serviceCIDR) { c.Status.Conditions[0].Reason = "R" }), status: "True", words: ready},
		"not ready":             {cidr: edited(a(), func(c *serviceCIDR) { c.Status.Conditions[0].Status = "False" }), status: "True", words: ready},
		"in use":                {cidr: a(), used: addresses("10.1.0.1")},

		"deleted now":                       {cidr: deleted(a(), 0), again: deletionGrace},
		"deleted before":                    {cidr: deleted(a(), 4*time.Second), again: 6 * time.Second},
		"its time is over":                  {cidr: deleted(a(), deletionGrace), remove: true},
		"held by another finalizer":         {cidr: edited(deleted(a(), time.Hour), func(c *serviceCIDR) { c.Finalizers = []string{"x"} })},
		"deleted in use":                    {cidr: deleted(a(), time.Hour), used: addresses("10.1.0.1"), status: "False", words: waits},
		"deleted in use, known":             {cidr: edited(deleted(a(), time.Hour), func(c *serviceCIDR) { c.Status.Conditions[0] = *terminating(waits) }), used: addresses("10.1.0.1")},
		"no longer in use":                  {cidr: edited(deleted(a(), time.Hour), func(c *serviceCIDR) { c.Status.Conditions[0] = *terminating(waits) }), remove: true},
		"others are in use":                 {cidr: deleted(a(), time.Hour), used: addresses("10.1.1.1", "fd00::1"), remove: true},
		"in use by the network's address":   {cidr: deleted(a(), time.Hour), used: addresses("10.1.0.0"), remove: true},
		"in use by the broadcast address":   {cidr: deleted(a(), time.Hour), used: addresses("10.1.0.255"), remove: true},
		"in use by the last address":        {cidr: deleted(a(), time.Hour), used: addresses("10.1.0.254"), status: "False", words: waits},
		"another holds what is in use":      {cidr: deleted(a(), time.Hour), others: []*serviceCIDR{cidr("b", "10.1.0.0/25")}, used: addresses("10.1.0.1"), remove: true},
		"another holds a part of it":        {cidr: deleted(a(), time.Hour), others: []*serviceCIDR{cidr("b", "10.1.0.0/25")}, used: addresses("10.1.0.1", "10.1.0.200"), status: "False", words: waits},
		"another contains it":               {cidr: deleted(a(), time.Hour), others: []*serviceCIDR{cidr("b", "10.0.0.0/8")}, used: addresses("10.1.0.1"), remove: true},
		"another is the same":               {cidr: deleted(a(), time.Hour), others: []*serviceCIDR{cidr("b", "10.1.0.0/24")}, used: addresses("10.1.0.1"), remove: true},
		"another contains it, deleted now":  {cidr: deleted(a(), 0), others: []*serviceCIDR{cidr("b", "10.0.0.0/8")}, used: addresses("10.1.0.1"), again: deletionGrace},
		"two families, one contained":       {cidr: deleted(cidr("a", "10.1.0.0/24", "fd00::/112"), time.Hour), others: []*serviceCIDR{cidr("b", "10.1.0.0/16")}, used: addresses("fd00::1"), status: "False", words: waits},
		"two families, both contained":      {cidr: deleted(cidr("a", "10.1.0.0/24", "fd00::/112"), time.Hour), others: []*serviceCIDR{cidr("b", "10.1.0.0/16", "fd00::/64")}, used: addresses("fd00::1"), remove: true},
		"the last address of version 6":     {cidr: deleted(cidr("a", "fd00::/112"), time.Hour), used: addresses("fd00::ffff"), status: "False", words: waits},
		"another neighbour, not containing": {cidr: deleted(a(), time.Hour), others: []*serviceCIDR{cidr("b", "10.1.1.0/24")}, used: addresses("10.1.0.1"), status: "False", words: waits},
	} {
		t.Run(name, func(t *testing.T) {
			got := planOf(c.cidr, append(c.others, c.cidr), c.used, now)
			var status, words string
			if got.condition != nil {
				status, words = string(got.condition.Status), got.condition.Message
			}
			if diff := cmp.Diff([]any{c.add, c.remove, c.status, c.words, c.again}, []any{got.add, got.remove, status, words, got.again}); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func terminating(words string) *metav1.Condition {
	return &metav1.Condition{Type: "Ready", Status: metav1.ConditionFalse, Reason: "Terminating", Message: words}
}

func TestAddressOf(t *testing.T) {
	address := func(name, manager string) *networkingv1.IPAddress {
		return &networkingv1.IPAddress{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{networkingv1.LabelManagedBy: manager}}}
	}
	if ip, ours := addressOf(address("10.1.0.1", manager)); !ours || ip.String() != "10.1.0.1" {
		t.Error(ip, ours)
	}
	for _, o := range []metav1.Object{address("10.1.0.1", "gateway"), address("ten", manager), &corev1.Pod{}} {
		if ip, ours := addressOf(o); ours {
			t.Errorf("%s: %v", o.GetName(), ip)
		}
	}
}
