package beside_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/cmd/setpoint/testserver"
	"github.com/setpoint-io/setpoint/internal/testlink"
)

// TestMain makes the test binary a setpoint: `testserver --socket PATH` is all that tests ask of it.
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == "testserver" {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		listener, err := testserver.Listen(os.Args[3])
		if err == nil {
			err = serve(ctx, os.Args[3], listener)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "Error:", err)
			os.Exit(1)
		}
		return
	}
	flag.Parse()
	os.Exit(withBinary(m))
}

// serve ends soon after the tests, and says who it is, so that a test can kill it.
func serve(ctx context.Context, socket string, listener net.Listener) error {
	if err := os.WriteFile(filepath.Join(filepath.Dir(socket), pidFile), []byte(strconv.Itoa(os.Getpid())), 0o600); err != nil {
		return errors.Join(err, listener.Close())
	}
	return testserver.Run(ctx, listener, testserver.Config{Idle: 2 * time.Second})
}

// withBinary runs the tests with this binary as setpoint, whatever the environment names, and a folder for its socket of its own: they
// kill the server, and have it end soon.
func withBinary(m *testing.M) int {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	os.Setenv(testlink.BinaryVariable, self)
	if os.Getenv(besideFolder) == "" {
		dir, err := os.MkdirTemp("", "b")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir)
		os.Setenv("XDG_RUNTIME_DIR", dir)
		os.Setenv(besideFolder, dir)
	}
	return m.Run()
}

const (
	// besideFolder is set in processes that a test starts, and childKubeconfig for what they tell.
	besideFolder    = "BESIDE_TEST_FOLDER"
	childKubeconfig = "BESIDE_TEST_KUBECONFIG"
	pidFile         = "pid"
)

// killServer kills the test server as a machine out of memory does.
func killServer(t *testing.T) (pid int) {
	t.Helper()
	folder, err := testlink.Folder()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(folder, pidFile))
	if err != nil {
		t.Fatal(err)
	}
	pid, err = strconv.Atoi(string(text))
	if err == nil {
		err = syscall.Kill(pid, syscall.SIGKILL)
	}
	if err != nil {
		t.Fatal(err)
	}
	return pid
}
