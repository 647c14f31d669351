package nodeipam

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controllers/podnetwork"
	"github.com/setpoint-io/setpoint/controllers/reconcile"
	"github.com/setpoint-io/setpoint/controllers/reconcile/reconciletest"
)

func TestChoose(t *testing.T) {
	for _, c := range []struct {
		name, all string
		bits      int
		used      []string
		want      string
	}{
		{"first", "10.42.0.0/16", 24, nil, "10.42.0.0/24"},
		{"first gap", "10.42.0.0/16", 24, []string{"10.42.0.0/24", "10.42.2.0/24"}, "10.42.1.0/24"},
		{"the only one", "10.42.7.0/24", 24, nil, "10.42.7.0/24"},
		{"full", "10.42.7.0/24", 24, []string{"10.42.7.0/24"}, ""},
		{"small ones", "10.42.0.0/16", 26, []string{"10.42.0.0/26"}, "10.42.0.64/26"},
		{"the last one", "10.42.0.0/23", 24, []string{"10.42.0.0/24"}, "10.42.1.0/24"},
		{"the first of IPv6", "fd42::/56", 64, nil, "fd42::/64"},
		{"the next of IPv6", "fd42::/56", 64, []string{"fd42::/64"}, "fd42:0:0:1::/64"},
		{"between bytes", "fd42::/56", 70, []string{"fd42::/70"}, "fd42::400:0:0:0/70"},
		{"IPv6 is full", "fd42::/126", 126, []string{"fd42::/126"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			used := map[netip.Prefix]bool{}
			for _, u := range c.used {
				used[netip.MustParsePrefix(u)] = true
			}
			got, err := choose(netip.MustParsePrefix(c.all), c.bits, used)
			if c.want == "" {
				if !errors.Is(err, ErrFull) {
					t.Errorf("got %v, %v", got, err)
				}
				return
			}
			if err != nil || got.String() != c.want {
				t.Errorf("got %v, %v; want %s", got, err, c.want)
			}
		})
	}
}

// nodeWith is a node with a range, and one that it asks for.
func nodeWith(name, cidr, former string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if cidr != "" {
		n.Spec.PodCIDR, n.Spec.PodCIDRs = cidr, []string{cidr}
	}
	if former != "" {
		n.Annotations = map[string]string{wantedAnnotation: former}
	}
	return n
}

// rangesAfter lets the controller work on nodes and returns the range of each.
func rangesAfter(t *testing.T, all string, nodes ...*corev1.Node) map[string]string {
	t.Helper()
	w := reconciletest.New(t)
	for _, n := range nodes {
		reconciletest.Add(w, n)
	}
	w.Run(New(podnetwork.Network{CIDR: netip.MustParsePrefix(all), NodeMaskSize: 24}.Or(podnetwork.Default())))
	w.Settle()
	list, err := w.Client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ranges := map[string]string{}
	for _, n := range list.Items {
		ranges[n.Name] = n.Spec.PodCIDR
	}
	return ranges
}

// TestForeignRangesTakeNothing: a range that no controller gave leaves the others theirs.
func TestForeignRangesTakeNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := rangesAfter(t, "10.42.0.0/23",
			nodeWith("half-the-world", "0.0.0.0/1", ""), nodeWith("larger", "10.42.0.0/16", ""), nodeWith("smaller", "10.42.0.128/25", ""),
			nodeWith("odd", "10.42.1.7/24", ""), nodeWith("elsewhere", "10.99.0.0/24", ""), nodeWith("a", "", ""), nodeWith("b", "", ""))
		if got["a"] != "10.42.0.0/24" && got["a"] != "10.42.1.0/24" || got["b"] == got["a"] || got["b"] == "" {
			t.Errorf("ranges: %v", got)
		}
	})
}

// TestFormerRangeIsGivenAgain: the pods of a node that registers anew have addresses of it.
func TestFormerRangeIsGivenAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := rangesAfter(t, "10.42.0.0/16", nodeWith("other", "10.42.5.0/24", ""), nodeWith("back", "", "10.42.7.0/24"),
			nodeWith("greedy", "", "10.0.0.0/8"), nodeWith("thief", "", "10.42.5.0/24"))
		for _, name := range []string{"greedy", "thief"} {
			if p, err := netip.ParsePrefix(got[name]); err != nil || p.Bits() != 24 || got[name] == "10.42.5.0/24" {
				t.Errorf("%s has %q", name, got[name])
			}
		}
		if got["back"] != "10.42.7.0/24" {
			t.Errorf("ranges: %v", got)
		}
	})
}

// TestMoreThan256Nodes: a larger range, or smaller parts of it, has room for more.
func TestMoreThan256Nodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var nodes []*corev1.Node
		for i := range 300 {
			nodes = append(nodes, nodeWith(fmt.Sprintf("n%03d", i), "", ""))
		}
		seen := map[string]bool{}
		for name, cidr := range rangesAfter(t, "10.40.0.0/14", nodes...) {
			p, err := netip.ParsePrefix(cidr)
			if err != nil || seen[cidr] || p.Bits() != 24 || !netip.MustParsePrefix("10.40.0.0/14").Contains(p.Addr()) {
				t.Errorf("%s has %q", name, cidr)
			}
			seen[cidr] = true
		}
		if len(seen) != 300 {
			t.Errorf("%d ranges", len(seen))
		}
	})
}

// TestTwoFamilies: a node has a range of each, the former ones if they are free; one that has only one range keeps it, because
// spec.podCIDRs never changes.
func TestTwoFamilies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network, err := podnetwork.Parse(podnetwork.Flags{CIDR: "10.42.0.0/16,fd42::/63", Services: "10.96.0.0/16,fd96::/112"})
		if err != nil {
			t.Fatal(err)
		}
		w := reconciletest.New(t)
		reconciletest.Add(w, nodeWith("single", "10.42.0.0/24", ""))
		w.Run(New(network.Or(podnetwork.Default())))
		ranges := func(name, former string) string {
			t.Helper()
			reconciletest.Add(w, nodeWith(name, "", former))
			w.Settle()
			n, err := w.Client.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
			if err != nil || len(n.Spec.PodCIDRs) > 0 && n.Spec.PodCIDR != n.Spec.PodCIDRs[0] {
				t.Errorf("%+v, %v", n.Spec, err)
			}
			return strings.Join(n.Spec.PodCIDRs, ",")
		}
		for _, c := range [][3]string{
			{"back", "10.42.7.0/24,fd42:0:0:1::/64", "10.42.7.0/24,fd42:0:0:1::/64"},
			{"thief", "fd42:0:0:1::/64,10.42.7.0/24", "10.42.1.0/24,fd42::/64"},
			{"late", "", ""},
		} {
			if got := ranges(c[0], c[1]); got != c[2] {
				t.Errorf("%s: %q", c[0], got)
			}
		}
		if events := w.Events.List(); len(events) == 0 || !strings.Contains(events[0], "all of fd42::/63 is taken") {
			t.Errorf("events: %v", events)
		}
		if err := w.Client.CoreV1().Nodes().Delete(t.Context(), "back", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		w.Settle()
		for name, want := range map[string]string{"single": "10.42.0.0/24", "late": "10.42.2.0/24,fd42:0:0:1::/64"} {
			n, err := w.Client.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
			if err != nil || strings.Join(n.Spec.PodCIDRs, ",") != want {
				t.Errorf("%s: %v, %v", name, n.Spec.PodCIDRs, err)
			}
		}
	})
}

// TestNodesWithoutRangesCostLittle: that none is free is found once, and not for each of a thousand nodes by looking at a thousand.
func TestNodesWithoutRangesCostLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const nodes = 200
		w := reconciletest.New(t)
		reconciletest.Add(w, nodeWith("first", "10.42.0.0/24", ""))
		for i := range nodes {
			reconciletest.Add(w, nodeWith(fmt.Sprintf("n%03d", i), "", ""))
		}
		network := podnetwork.Network{CIDR: netip.MustParsePrefix("10.42.0.0/24"), NodeMaskSize: 24}.Or(podnetwork.Default())
		w.Warm(New(network))
		w.Start()
		synctest.Wait()
		w.RunIn(w.Env(), reconcile.Controller{Name: "test", Reads: New(network).Reads, Run: func(ctx context.Context, env *reconcile.Env) error {
			c := &controller{env: env, network: network, nodes: reconcile.Nodes.From(env), given: map[string][]netip.Prefix{}}
			if _, err := c.rangesOf(nodeWith("n000", "", "")); !errors.Is(err, ErrFull) {
				t.Errorf("the range is taken, and %v", err)
			}
			if n := testing.AllocsPerRun(10, func() { _, _ = c.rangesOf(nodeWith("n001", "", "")) }); n > nodes/10 {
				t.Errorf("%v allocations for a node that waits", n)
			}
			return reconcile.Idle(ctx)
		}})
	})
}

func TestNoTwoNodesShareARange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := reconciletest.New(t)
		w.Run(New(podnetwork.Network{CIDR: netip.MustParsePrefix("10.42.0.0/20"), NodeMaskSize: 24}.Or(podnetwork.Default())))
		for i := range 17 {
			reconciletest.Add(w, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%02d", i)}})
		}
		w.Settle()
		seen, waiting := map[string]string{}, ""
		list, err := w.Client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range list.Items {
			if n.Spec.PodCIDR == "" {
				waiting = n.Name
				continue
			}
			if other, ok := seen[n.Spec.PodCIDR]; ok {
				t.Errorf("%s and %s share %s", n.Name, other, n.Spec.PodCIDR)
			}
			seen[n.Spec.PodCIDR] = n.Name
		}
		if len(seen) != 16 || waiting == "" {
			t.Fatalf("%d ranges given, want all 16 and one node waiting", len(seen))
		}
		if events := w.Events.List(); len(events) == 0 || !strings.Contains(events[0], "CIDRNotAvailable") {
			t.Errorf("events: %v", events)
		}
		freed := seen["10.42.3.0/24"]
		if err := w.Client.CoreV1().Nodes().Delete(t.Context(), freed, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		w.Settle()
		n, err := w.Client.CoreV1().Nodes().Get(t.Context(), waiting, metav1.GetOptions{})
		if err != nil || n.Spec.PodCIDR != "10.42.3.0/24" {
			t.Errorf("the waiting node got %q, %v", n.Spec.PodCIDR, err)
		}
		w.Writes()
		w.Settle()
		if writes := w.Writes(); len(writes) > 0 {
			t.Errorf("an unchanged world was written to: %v", writes)
		}
	})
}
