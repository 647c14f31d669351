package escape

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"

	"github.com/setpoint-io/setpoint/agent/net/network/networktest"
)

// TestMain runs the tests in namespaces of their own: with the PID namespace end all processes, with the mount namespace
// all mounts, with the network namespace all interfaces.
func TestMain(m *testing.M) {
	networktest.Enter(unix.CLONE_NEWNET | unix.CLONE_NEWNS | unix.CLONE_NEWPID)
	if os.Geteuid() == 0 {
		if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NOEXEC|unix.MS_NODEV, ""); err != nil {
			fmt.Fprintln(os.Stderr, "processes of the tests:", err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
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
