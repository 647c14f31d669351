package process

import (
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// timerSlack is how late the kernel may wake a thread of this process whose timer
// has run out, so that it wakes up less often. Linux's default is 50 us.
//
// Go's runtime looks every 20 us for threads that are held by the kernel, and each
// fsync is such a hold: three replicas under load spent a tenth of their CPU on
// going to sleep and waking up again. No promise hangs on less than a millisecond.
const timerSlack = 500 * time.Microsecond

// WakeLess sets the slack of all threads; later ones inherit it. Without CAP_SYS_NICE
// the kernel refuses, and everything works as before: a service manager can set it
// then (TimerSlackNSec of systemd).
func WakeLess() {
	value := []byte(strconv.FormatInt(timerSlack.Nanoseconds(), 10))
	done := map[string]bool{}
	for found := true; found; { // a thread may be begun by one that was not set yet
		found = false
		threads, _ := filepath.Glob("/proc/self/task/*")
		for _, thread := range threads {
			if !done[thread] {
				done[thread], found = true, true
				_ = os.WriteFile(slackFile(filepath.Base(thread)), value, 0)
			}
		}
	}
}

// slackFile: the kernel shows it below /proc/<thread>, not below /proc/self/task.
func slackFile(thread string) string { return filepath.Join("/proc", thread, "timerslack_ns") }
