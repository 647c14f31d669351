package noswap

import "testing"

func TestSwaps(t *testing.T) {
	const heading = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n"
	for table, want := range map[string]bool{
		"": false, heading: false, heading + "\n": false,
		heading + "/dev/sda2                               partition\t999420\t\t0\t\t-2\n": true,
	} {
		if got := swaps(table); got != want {
			t.Errorf("%q: %v", table, got)
		}
	}
}

// TestAnUnknownOptionIsNotTaken: whether the kernel knows noswap differs from machine to machine; this one none knows.
func TestAnUnknownOptionIsNotTaken(t *testing.T) {
	if takes("no-such-option") {
		t.Error("it is taken")
	}
}
