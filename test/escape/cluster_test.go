package escape

import (
	"bufio"
	"debug/buildinfo"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/setpoint-io/setpoint/agent/base/machine/machinetest"
)

const (
	// readyTimeMax bounds the start of the cluster, on a machine that does much else.
	readyTimeMax = 60 * time.Second
	// stopTimeMax bounds its orderly end.
	stopTimeMax = 30 * time.Second
	// inherited is how many descriptors setpoint is started with, beside the standard streams.
	inherited = 20
	// binaryVariable is the absolute path of a binary to test instead of one built here.
	binaryVariable = "SETPOINT_TEST_BINARY"
	// attackerVariable is the same of what attacks.
	attackerVariable = "SETPOINT_TEST_ATTACKER"
)

// nodeSettings give a pod so few processes that reaching for more costs a machine nothing.
const nodeSettings = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
podPidsLimit: 500
evictionHard: {memory.available: 100Mi} # the machine's disk may be full
`

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
	settings := filepath.Join(t.TempDir(), "kubelet.yaml")
	check(t, os.WriteFile(settings, []byte(nodeSettings), 0o600))
	command := exec.Command(c.binary, "dev", "--port", "0", "--data-dir", c.dir, "--kubelet-config", settings,
		"--user-namespaces", "asked") // else the user namespace stops nearly all, and nothing shows what the other walls are worth
	output, err := command.StdoutPipe()
	check(t, err)
	command.Stderr = t.Output()
	// Whoever starts a program may leave it a folder of the host, and a keyring. Children are given some descriptors, which take the
	// places of the first.
	root, err := os.Open("/")
	check(t, err)
	defer root.Close()
	command.ExtraFiles = slices.Repeat([]*os.File{root}, inherited)
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

// isProductAlone tells that the program of shims is the product itself: the small helper is in it only with a tag.
func (c *cluster) isProductAlone() (bool, error) {
	info, err := buildinfo.ReadFile(c.binary)
	if err != nil {
		return false, err
	}
	return !slices.ContainsFunc(info.Settings, func(s debug.BuildSetting) bool {
		return s.Key == "-tags" && slices.Contains(strings.Split(s.Value, ","), "shimbinary")
	}), nil
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
