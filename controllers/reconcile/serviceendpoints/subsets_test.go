package serviceendpoints

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func generated(rng *rand.Rand) []corev1.EndpointSubset {
	var all []corev1.EndpointSubset
	for range rng.IntN(5) {
		var s corev1.EndpointSubset
		for range rng.IntN(4) {
			s.Addresses = append(s.Addresses, corev1.EndpointAddress{IP: fmt.Sprintf("10.0.0.%d", rng.IntN(5))})
			s.NotReadyAddresses = append(s.NotReadyAddresses, corev1.EndpointAddress{IP: fmt.Sprintf("10.0.0.%d", rng.IntN(9))})
		}
		for range 1 + rng.IntN(3) {
			s.Ports = append(s.Ports, corev1.EndpointPort{Port: 1 + rng.Int32N(4)})
		}
		all = append(all, s)
	}
	return all
}

// states says for each port and address whether it is ready.
func states(subsets []corev1.EndpointSubset) map[string]bool {
	all := map[string]bool{}
	for _, s := range subsets {
		for _, port := range s.Ports {
			for _, a := range s.Addresses {
				key := fmt.Sprintf("%s:%d", a.IP, port.Port)
				was, ok := all[key]
				all[key] = !ok || was
			}
			for _, a := range s.NotReadyAddresses {
				all[fmt.Sprintf("%s:%d", a.IP, port.Port)] = false
			}
		}
	}
	return all
}

// TestRepack: the meaning stays, each port is in one subset, and neither the order of the
// input nor a second time makes a difference.
func TestRepack(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		in := generated(rng)
		out := Repack(in)
		if diff := cmp.Diff(states(in), states(out)); diff != "" {
			t.Fatal(diff)
		}
		seen := map[corev1.EndpointPort]bool{}
		for _, s := range out {
			for _, port := range s.Ports {
				if seen[port] {
					t.Fatalf("port %d twice: %+v", port.Port, out)
				}
				seen[port] = true
			}
		}
		slices.Reverse(in)
		if diff := cmp.Diff(out, Repack(in)) + cmp.Diff(out, Repack(out)); diff != "" {
			t.Fatal(diff)
		}
	}
}
