package embedded

import (
	"syscall"
	"testing"
)

func TestStopSignal(t *testing.T) {
	for name, want := range map[string]syscall.Signal{
		"SIGQUIT": syscall.SIGQUIT, "QUIT": syscall.SIGQUIT, "9": syscall.SIGKILL, "": syscall.SIGTERM, "-1": syscall.SIGTERM,
		"SIGRTMIN": 34, "RTMIN+1": 35, "SIGRTMAX": 64, "SIGRTMAX-14": 50,
		"SIGRTMIN-1": syscall.SIGTERM, "SIGRTMAX+1": syscall.SIGTERM, "SIGRTMIN+x": syscall.SIGTERM, "SIGNONE": syscall.SIGTERM,
	} {
		if got := stopSignal(name); got != want {
			t.Errorf("%q: %d, want %d", name, got, want)
		}
	}
}
