package shim

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/boot"
)

// The names under which the executable is started for one of its hidden roles.
const (
	Name      = "setpoint-shim"
	InitName  = "setpoint-init"
	PauseName = "setpoint-pause"
	ExecName  = "setpoint-exec"
	// PreflightName finds out whether this machine can run containers, and with users of their own; see boot.Preflight.
	PreflightName = "setpoint-preflight"
)

// SelfExecutable is how a shim finds the executable of its containers' first stage: itself, even when the file
// has been replaced by an upgrade since.
const SelfExecutable = "/proc/self/exe"

// Dispatch runs the role that argv[0] names and then ends the process; it returns only when there is none.
func Dispatch() {
	if len(os.Args) == 0 {
		return
	}
	switch filepath.Base(os.Args[0]) {
	case Name:
		os.Exit(Main(os.Args[1:]))
	case InitName:
		boot.Init()
		os.Exit(1)
	case PauseName:
		boot.Pause()
		os.Exit(1)
	case ExecName:
		boot.Exec()
		os.Exit(1)
	case PreflightName:
		if err := preflight(os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
}

// preflight has no argument in a holder of users, else a folder and, for users, their holder.
func preflight(args []string) error {
	switch len(args) {
	case 0:
		return boot.PreflightHolder()
	case 1:
		return boot.Preflight(args[0])
	}
	holder, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	return boot.PreflightUsers(args[0], holder)
}

// nameProcess makes the role visible in ps and top; a kernel that refuses only shows another name.
func nameProcess(name string) {
	_ = os.WriteFile("/proc/self/comm", []byte(name), 0)
}
