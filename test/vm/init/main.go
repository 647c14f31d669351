// Command init is the first process of the virtual machine that package vm describes: it loads the modules, mounts the disk and
// what a distribution would mount, runs the tests, says on the console how they ended, and turns the machine off.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// asRunner marks the child of the first process, which runs the tests.
const asRunner = "run"

func main() {
	if len(os.Args) == 2 && os.Args[1] == asRunner {
		if err := runPlan(); err != nil {
			fmt.Println("vm: FAILED:", err)
			os.Exit(1)
		}
		fmt.Println("vm: PASSED")
		return
	}
	if err := boot(); err != nil {
		fmt.Println("vm: FAILED: boot:", err)
	} else if err := runAndReap(); err != nil {
		fmt.Println("vm: FAILED:", err)
	}
	unix.Sync()
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
}

// runAndReap starts the runner and, until it ends, waits for every process that has lost its parent, as an init does.
func runAndReap() error {
	runner := exec.Command("/proc/self/exe", asRunner)
	runner.Stdout, runner.Stderr = os.Stdout, os.Stderr
	runner.Env = []string{"PATH=/usr/bin:/bin:/usr/sbin:/sbin", "HOME=/root", "TMPDIR=/tmp", "GOTRACEBACK=all"}
	if err := runner.Start(); err != nil {
		return err
	}
	for {
		var status syscall.WaitStatus
		switch pid, err := syscall.Wait4(-1, &status, 0, nil); {
		case err == syscall.EINTR:
		case err != nil:
			return err
		case pid == runner.Process.Pid && status.Signaled():
			return fmt.Errorf("the runner was ended by %v", status.Signal())
		case pid == runner.Process.Pid:
			return nil // It has said how the tests ended.
		}
	}
}
