package boot

import (
	"os"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestAWorkingDirectoryOutsideOfTheRootIsRefused: a link of /proc/self/fd would lead there (CVE-2024-21626).
func TestAWorkingDirectoryOutsideOfTheRootIsRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("a root directory of its own needs root")
	}
	outside, root := t.TempDir(), t.TempDir()
	type result struct{ setUp, within, beyond error }
	results := make(chan result)
	go func() {
		runtime.LockOSThread() // the thread has another root from now on, and ends with this goroutine
		var r result
		for _, do := range []func() error{
			func() error { return unix.Unshare(unix.CLONE_FS) }, func() error { return unix.Chdir(outside) }, func() error { return unix.Chroot(root) },
		} {
			if r.setUp = do(); r.setUp != nil {
				break
			}
		}
		r.beyond = enterCwd(".")
		r.within = enterCwd("/")
		results <- r
	}()
	got := <-results
	if got.setUp != nil || got.within != nil || got.beyond == nil || !strings.Contains(got.beyond.Error(), "not in the container") {
		t.Errorf("set-up %v; inside: %v; outside: %v", got.setUp, got.within, got.beyond)
	}
}
