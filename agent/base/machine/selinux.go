package machine

import (
	"os"
	"slices"
	"strings"
	"sync"
)

// HasSELinux reports whether the kernel runs with SELinux: it registers selinuxfs then only. It is read once.
var HasSELinux = sync.OnceValue(func() bool {
	types, err := os.ReadFile("/proc/filesystems")
	return err != nil || hasFilesystem(string(types), "selinuxfs") // who cannot look must not say that there is none
})

func hasFilesystem(types, name string) bool {
	return slices.Contains(strings.Fields(types), name)
}
