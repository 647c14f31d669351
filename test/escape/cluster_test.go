package escape

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/setpoint-io/setpoint/agent/machine/machinetest"
)

const (
	// readyTimeMax bounds the start of the cluster, on a machine that does much else.
	readyTimeMax = 60 * time.Second
	// stopTimeMax bounds its orderly end.
	stopTimeMax = 30 * time.Second
	// binaryVariable is the absolute path of a binary to test instead of one built here.
	binaryVariable = "SETPOINT_TEST_BINARY"
)

// cluster is one `setpoint dev` with one node of real containers.
type cluster struct {
	client                  kubernetes.Interface
	binary, dir, kubeconfig string
}

func startCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{dir: filepath.Join(t.TempDir(), "data"), binary: filepath.Join(t.TempDir(), "setpoint")}
	t.Cleanup(func() { machinetest.UnmountBelow(c.dir) })
	if given := os.Getenv(binaryVariable); given != "" {
		check(t, os.Symlink(given, c.binary))
	} else {
		goBuild(t, c.binary, "../../cmd/setpoint")
	}
	writeImages(t, filepath.Join(c.dir, "images"))
	c.run(t)
	c.kubeconfig = filepath.Join(c.dir, "admin.kubeconfig")
	config, err := clientcmd.BuildConfigFromFlags("", c.kubeconfig)
	check(t, err)
	c.client, err = kubernetes.NewForConfig(config)
	check(t, err)
	c.awaitAccount(t)
	return c
}

// awaitAccount waits for the service account without which no pod is admitted.
func (c *cluster) awaitAccount(t *testing.T) {
	t.Helper()
	wait := exec.Command(c.binary, "kubectl", "wait", "--for=create", "--timeout=60s", "serviceaccount/default")
	wait.Env = append(os.Environ(), "KUBECONFIG="+c.kubeconfig)
	if out, err := wait.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// run starts the process and returns when it is ready. The test's end stops it, and that has to work.
func (c *cluster) run(t *testing.T) {
	t.Helper()
	command := exec.Command(c.binary, "dev", "--port", "0", "--data-dir", c.dir)
	output, err := command.StdoutPipe()
	check(t, err)
	command.Stderr = t.Output()
	// Whoever starts a program may leave it a folder of the host, and a keyring.
	root, err := os.Open("/")
	check(t, err)
	defer root.Close()
	command.ExtraFiles = []*os.File{root}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	_, err = unix.KeyctlJoinSessionKeyring("escape")
	check(t, err)
	_, err = unix.AddKey("user", "secret", []byte("of-the-host"), unix.KEY_SPEC_SESSION_KEYRING)
	check(t, err)
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	check(t, command.Start())
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		for lines := bufio.NewScanner(output); lines.Scan(); {
			if strings.Contains(lines.Text(), "Setpoint is ready") {
				close(ready)
			}
		}
		ended <- command.Wait()
	}()
	t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM) // it may have ended
		select {
		case <-ended:
		case <-time.After(stopTimeMax):
			t.Errorf("setpoint dev does not end by SIGTERM")
		}
	})
	select {
	case <-ready:
	case err := <-ended:
		ended <- err
		t.Fatalf("setpoint dev: %v", err)
	case <-time.After(readyTimeMax):
		t.Fatal("setpoint dev is not ready")
	}
}

func goBuild(t *testing.T, to, folder string) {
	t.Helper()
	build := exec.Command("go", "build", "-o", to, folder)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
