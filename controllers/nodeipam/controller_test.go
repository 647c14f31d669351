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

	"github.com/setpoint-io/setpoint/controllers/controllertest"
)

func TestChoose(t *testing.T) {
	for _, c := range []struct {
		name, all string
		used      []string
		want      string
	}{
		{"first", "10.42.0.0/16", nil, "10.42.0.0/24"},
		{"first gap", "10.42.0.0/16", []string{"10.42.0.0/24", "10.42.2.0/24"}, "10.42.1.0/24"},
		{"clear of other sizes", "10.42.0.0/16", []string{"10.42.0.0/22"}, "10.42.4.0/24"},
		{"clear of parts", "10.42.0.0/16", []string{"10.42.0.128/25"}, "10.42.1.0/24"},
		{"the only one", "10.42.7.0/24", nil, "10.42.7.0/24"},
		{"full", "10.42.7.0/24", []string{"10.42.7.0/24"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			used := map[netip.Prefix]bool{}
			for _, u := range c.used {
				used[netip.MustParsePrefix(u)] = true
			}
			got, err := choose(netip.MustParsePrefix(c.all), used)
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

func TestNoTwoNodesShareARange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := controllertest.New(t)
		w.Run(func(ctx context.Context) error {
			return Run(ctx, Config{Client: w.Client, Informers: w.Informers, PodCIDR: netip.MustParsePrefix("10.42.0.0/20"), Events: w.Events})
		})
		for i := range 17 {
			controllertest.Add(w, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%02d", i)}})
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
