package embedded

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/setpoint-io/setpoint/agent/cri/embedded/demo"
)

const insideEnv = "SETPOINT_TEST_INSIDE"

// TestMain makes this executable everything at once: shim, container init, exec helper, the image's programs, and the
// tests. The tests run in a network and a mount namespace of their own, so that whatever they leave ends with them.
func TestMain(m *testing.M) {
	ReexecMain()
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "demo":
			os.Exit(demo.Main(os.Args[2:]))
		case "workload":
			os.Exit(workload(os.Args[2:]))
		}
	}
	if os.Geteuid() == 0 && os.Getenv(insideEnv) == "" {
		os.Exit(inNamespaces())
	}
	if os.Geteuid() == 0 {
		if err := prepareNamespaces(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

func inNamespaces() int {
	command := exec.Command("/proc/self/exe", os.Args[1:]...)
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	command.Env = append(os.Environ(), insideEnv+"=1")
	command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	err := command.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "namespaces for the tests:", err)
		return 1
	}
	return 0
}

func prepareNamespaces() error {
	if err := unix.Mount("", "/", "", unix.MS_SLAVE|unix.MS_REC, ""); err != nil {
		return err
	}
	loopback, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	return netlink.LinkSetUp(loopback)
}
