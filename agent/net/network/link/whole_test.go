package link

import (
	"errors"
	"fmt"
	"testing"

	"github.com/vishvananda/netlink"
)

// TestWhole: a list that changed while it was read is read again, but not for ever; another error is told at once.
func TestWhole(t *testing.T) {
	other := errors.New("refused")
	for _, test := range []struct {
		name        string
		interrupted int
		then        error
		asked       int
		want        error
	}{
		{"quiet", 0, nil, 1, nil},
		{"changed twice", 2, nil, 3, nil},
		{"refused after a change", 1, other, 2, other},
		{"changes always", dumpTriesMax + 1, nil, dumpTriesMax, netlink.ErrDumpInterrupted},
	} {
		t.Run(test.name, func(t *testing.T) {
			asked := 0
			list, err := whole(func() ([]int, error) {
				if asked++; asked <= test.interrupted {
					return nil, fmt.Errorf("dump: %w", netlink.ErrDumpInterrupted)
				}
				return []int{asked}, test.then
			})
			if asked != test.asked || !errors.Is(err, test.want) {
				t.Errorf("asked %d times, %v", asked, err)
			}
			if err == nil && len(list) != 1 {
				t.Errorf("list %v", list)
			}
		})
	}
}
