package embedded

import (
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// stopSignal finds a signal by its number or by its name, with or without "SIG"; SIGTERM if there is none.
func stopSignal(name string) syscall.Signal {
	if number, err := strconv.Atoi(name); err == nil && number > 0 {
		return syscall.Signal(number)
	}
	if name != "" && !strings.HasPrefix(name, "SIG") {
		name = "SIG" + name
	}
	if signal := unix.SignalNum(name); signal != 0 {
		return signal
	}
	if signal := realTime(name); signal != 0 {
		return signal
	}
	return syscall.SIGTERM
}

// The first and last real-time signals, as C libraries count them: the first two are theirs.
const realTimeMin, realTimeMax = 34, 64

// realTime is the number of SIGRTMIN+n or SIGRTMAX-n, 0 if name is neither.
func realTime(name string) syscall.Signal {
	if name == "SIGRTMIN" || name == "SIGRTMAX" {
		name += "+0"
	}
	base, offset := realTimeMin, strings.TrimPrefix(name, "SIGRTMIN")
	if offset == name {
		base, offset = realTimeMax, strings.TrimPrefix(name, "SIGRTMAX")
	}
	n, err := strconv.Atoi(offset)
	if err != nil || offset == name || base+n < realTimeMin || base+n > realTimeMax {
		return 0
	}
	return syscall.Signal(base + n)
}
