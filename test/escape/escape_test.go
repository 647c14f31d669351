package escape

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// insideEnv marks the process that already has namespaces of its own.
const insideEnv = "SETPOINT_TEST_INSIDE"

// TestMain runs the tests in namespaces of their own: with the PID namespace end all processes, with the mount namespace
// all mounts, with the network namespace all interfaces.
func TestMain(m *testing.M) {
	if os.Geteuid() != 0 {
		os.Exit(m.Run())
	}
	if os.Getenv(insideEnv) == "" {
		os.Exit(inNamespaces())
	}
	if err := prepareNamespaces(); err != nil {
		fmt.Fprintln(os.Stderr, "namespaces for the tests:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func inNamespaces() int {
	command := exec.Command("/proc/self/exe", os.Args[1:]...)
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	command.Env = append(os.Environ(), insideEnv+"=1")
	command.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS | unix.CLONE_NEWPID, Pdeathsig: syscall.SIGKILL,
	}
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
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NOEXEC|unix.MS_NODEV, ""); err != nil {
		return err
	}
	loopback, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	return netlink.LinkSetUp(loopback)
}

// TestEscapes runs the pages in testdata; the package's documentation says how to write one.
func TestEscapes(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: the pods are real containers")
	}
	c := startCluster(t)
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(env *testscript.Env) error {
			env.Setenv("PATH", filepath.Dir(c.binary)+string(os.PathListSeparator)+os.Getenv("PATH"))
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("KUBECONFIG", c.kubeconfig)
			env.Setenv("DATA", c.dir)
			env.Setenv("SETPOINT", c.binary)
			env.Values[pageKey{}] = &page{cluster: c}
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"guard":     guard,
			"unchanged": unchanged,
			"attack":    attack,
			"start":     start,
			"delete":    deletePod,
			"kubectl":   kubectl,
			"listen":    listen,
		},
		Condition: func(condition string) (bool, error) {
			if condition != "product" { // the whole product is the program of shims, not the small helper in it
				return false, fmt.Errorf("no such condition: %s", condition)
			}
			return c.isProductAlone()
		},
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
	})
}
