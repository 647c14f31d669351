package noswap

import (
	"os"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// TmpfsOption is the mount option that keeps a tmpfs from swap.
const TmpfsOption = "noswap"

// KeepsTmpfs reports whether this kernel knows TmpfsOption and lets us use it: Linux does since 6.4, and in no user namespace but the
// first. It is asked once, and nothing is mounted.
var KeepsTmpfs = sync.OnceValue(func() bool { return takes(TmpfsOption) })

// takes reports whether a tmpfs could be mounted with the option.
func takes(option string) bool {
	context, err := unix.Fsopen("tmpfs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return false
	}
	defer unix.Close(context)
	return unix.FsconfigSetFlag(context, option) == nil
}

// MachineSwaps reports whether this machine has swap switched on now. One that does not say so, as in some containers, has none.
func MachineSwaps() bool {
	table, _ := os.ReadFile("/proc/swaps")
	return swaps(string(table))
}

// swaps reads the content of /proc/swaps: a heading, and a line for each device or file.
func swaps(table string) bool { return strings.Count(strings.TrimSpace(table), "\n") > 0 }
