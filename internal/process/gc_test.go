package process

import "testing"

// TestGCPercent: a small heap has its headroom, one that a collection has to look through may double, and one of values does not.
func TestGCPercent(t *testing.T) {
	for _, tc := range []struct {
		name          string
		live, scanned uint64
		want          int
	}{
		{"nothing collected yet", 0, 0, gcPercentMax},
		{"small", 20 << 20, 10 << 20, gcPercentMax},
		{"between", 128 << 20, 64 << 20, 150},
		{"as large as the headroom", gcHeadroomBytes, 100 << 20, gcPercentLarge},
		{"large, half of it objects", 4 << 30, 2 << 30, gcPercentLarge},
		{"large, all of it objects", 4 << 30, 4 << 30, gcPercentLarge},
		{"large, a quarter of it objects", 4 << 30, 1 << 30, 50},
		{"large values, the headroom is left", 1 << 30, 20 << 20, 18},
		{"very large values", 16 << 30, 20 << 20, gcPercentMin},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := gcPercent(tc.live, tc.scanned); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}
