package process

import "testing"

func TestGCPercentLeavesHeadroomToSmallHeaps(t *testing.T) {
	for _, tc := range []struct {
		name string
		live uint64
		want int
	}{
		{"nothing collected yet", 0, gcPercentMax},
		{"small", 20 << 20, gcPercentMax},
		{"between", 128 << 20, 150},
		{"as large as the headroom", gcHeadroomBytes, gcPercentMin},
		{"large", 4 << 30, gcPercentMin},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := gcPercent(tc.live); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}
