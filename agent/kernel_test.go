package agent

import "testing"

// TestSwapWarning: secrets may reach a disk only where the machine swaps and its kernel cannot keep a tmpfs from that.
func TestSwapWarning(t *testing.T) {
	for _, machineSwaps := range []bool{false, true} {
		for _, keepsTmpfs := range []bool{false, true} {
			if told := swapWarning(machineSwaps, keepsTmpfs) != ""; told != (machineSwaps && !keepsTmpfs) {
				t.Errorf("swap %v, noswap %v: told %v", machineSwaps, keepsTmpfs, told)
			}
		}
	}
}
