package nodefaults

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/setpoint-io/setpoint/agent/base/machine/machinetest"
	"github.com/setpoint-io/setpoint/agent/base/machine/machinetest/leftovers"
)

const (
	// readyTimeMax bounds the start of a server or agent, on a machine that does much else.
	readyTimeMax = 60 * time.Second
	// leftTimeMax is how long what pods had may be there when they are gone: the kernel ends namespaces by and by.
	leftTimeMax = 20 * time.Second
	pollEvery   = 50 * time.Millisecond
	// diskBytes is the size of the agent's disk.
	diskBytes = 1 << 30
	// binaryVariable is the absolute path of a binary to test instead of one built here.
	binaryVariable = "SETPOINT_TEST_BINARY"
	serverAddress  = "127.0.0.1:6443"
)

// nodeSettings leave it to the tests when a pod has to go, and make room for a crowd.
const nodeSettings = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
maxPods: 1100
imageGCHighThresholdPercent: 100
evictionHard:
  nodefs.available: 0%
  nodefs.inodesFree: 0%
  imagefs.available: 0%
  memory.available: 0%
`

// node is a server and an agent with real containers.
type node struct {
	client    kubernetes.Interface
	bystander *bystander
	random    *rand.Rand

	binary, dir string
	// name of the node; control groups bear it, and all tests of this machine share them.
	name   string
	agent  *exec.Cmd
	server *exec.Cmd
	config *rest.Config // the administrator's
	log    string       // file to which agents write
}

// data is the agent's directory; the file system that is mounted there ends with the test.
func (n *node) data() string { return filepath.Join(n.dir, "agent") }

func (n *node) kubeconfig() string { return filepath.Join(n.dir, "server", "admin.kubeconfig") }

func startNode(t *testing.T) *node {
	t.Helper()
	n := &node{dir: t.TempDir(), name: fmt.Sprintf("faults-%x", rand.Uint32())}
	n.binary, n.log = filepath.Join(n.dir, "setpoint"), filepath.Join(n.dir, "agent.log")
	if given := os.Getenv(binaryVariable); given != "" {
		check(t, os.Symlink(given, n.binary))
	} else {
		goBuild(t, n.binary, "../../cmd/setpoint")
	}
	check(t, os.Mkdir(n.data(), 0o755))
	check(t, unix.Mount("disk", n.data(), "tmpfs", 0, fmt.Sprintf("size=%d,mode=755", diskBytes)))
	t.Cleanup(func() { machinetest.UnmountBelow(n.dir) })
	writeImage(t, filepath.Join(n.data(), "images"))
	check(t, os.WriteFile(filepath.Join(n.dir, "kubelet.yaml"), []byte(nodeSettings), 0o600))
	n.startServer(t)
	t.Cleanup(func() { n.end(t) })
	n.startAgent(t)
	return n
}

func (n *node) startServer(t *testing.T) {
	n.server = n.start(t, filepath.Join(n.dir, "server.log"), "server", "--data-dir", filepath.Join(n.dir, "server"),
		"--advertise-address", serverAddress, "--gossip-address", "", "--node-cidr-mask-size", "21")
	t.Cleanup(func() { _, _ = n.server.Process.Kill(), n.server.Wait() })
	n.await(t, readyTimeMax, "the server", func(context.Context) string {
		log, _ := os.ReadFile(filepath.Join(n.dir, "server.log"))
		if !bytes.Contains(log, []byte("is ready; kubeconfig")) {
			return "it says: " + string(log)
		}
		return ""
	})
	var err error
	n.config, err = clientcmd.BuildConfigFromFlags("", n.kubeconfig())
	check(t, err)
	n.config.QPS = -1
	n.client, err = kubernetes.NewForConfig(n.config)
	check(t, err)
	token := n.setpoint(t, "token", "create")
	check(t, os.WriteFile(filepath.Join(n.dir, "token"), token, 0o600))
	n.setpoint(t, "kubectl", "wait", "--for=create", "--timeout=60s", "serviceaccount/default")
}

// start runs the binary with its output in a file.
func (n *node) start(t *testing.T, log string, args ...string) *exec.Cmd {
	t.Helper()
	output, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	check(t, err)
	defer output.Close()
	command := exec.Command(n.binary, args...)
	command.Stdout, command.Stderr = output, output
	check(t, command.Start())
	return command
}

// startAgent does not wait until it is ready.
func (n *node) startAgent(t *testing.T) {
	t.Helper()
	n.agent = n.start(t, n.log, "agent", "--name", n.name, "--data-dir", n.data(), "--token-file", filepath.Join(n.dir, "token"),
		"--servers", serverAddress, "--gossip-address", "", "--ingress-http-port", "0", "--ingress-https-port", "0",
		"--kubelet-config", filepath.Join(n.dir, "kubelet.yaml"))
}

// killAgent returns when it is dead.
func (n *node) killAgent(t *testing.T) {
	t.Helper()
	_ = n.agent.Process.Kill() // it may have ended
	_ = n.agent.Wait()
}

// agentGivesUp waits until the agent has ended by itself, with a last word that says why.
func (n *node) agentGivesUp(t *testing.T, why string) {
	t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- n.agent.Wait() }()
	select {
	case err := <-ended:
		log, readErr := os.ReadFile(n.log)
		check(t, readErr)
		lines := strings.Split(strings.TrimSpace(string(log)), "\n")
		if last := lines[len(lines)-1]; err == nil || !strings.HasPrefix(last, "setpoint: ") || !strings.Contains(last, why) {
			t.Errorf("the agent ended: %v: %s", err, last)
		}
	case <-time.After(readyTimeMax):
		t.Fatal("the agent neither works nor ends")
	}
}

// end ends the agent and all pods, and says what it wrote if a test has failed.
func (n *node) end(t *testing.T) {
	n.killAgent(t)
	if log, err := os.ReadFile(n.log); t.Failed() && err == nil {
		t.Logf("the agent's log:\n%s", log[max(0, len(log)-1<<16):])
	}
	n.killPods()
	for loop := range n.look()["loops"] {
		if device, err := os.Open("/dev/" + strings.Split(loop, "/")[3]); err == nil {
			_ = unix.IoctlSetInt(int(device.Fd()), unix.LOOP_CLR_FD, 0) // a test has failed, and this is all that can be done
			_ = device.Close()
		}
	}
}

// killPods ends what the agent leaves running, as it should; groups and loop devices are all that would outlive the tests.
func (n *node) killPods() {
	for range 100 {
		left := leftovers.Scope{Node: n.name}.Look()
		for process := range left["processes"] {
			var pid int
			if _, err := fmt.Sscanf(process, "/proc/%d setpoint-shim", &pid); err == nil {
				_ = unix.Kill(pid, unix.SIGKILL)
			}
		}
		groups := slices.Sorted(maps.Keys(left["cgroups"]))
		if len(groups) == 0 {
			return
		}
		for _, group := range slices.Backward(groups) {
			_ = unix.Rmdir(group)
		}
		<-time.After(pollEvery)
	}
}

// setpoint runs the binary to its end, with the administrator's rights.
func (n *node) setpoint(t *testing.T, args ...string) []byte {
	t.Helper()
	out, err := n.run(args...)
	if err != nil {
		t.Fatalf("setpoint %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

func (n *node) run(args ...string) ([]byte, error) {
	command := exec.Command(n.binary, args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+n.kubeconfig())
	var complaints bytes.Buffer
	command.Stderr = &complaints
	out, err := command.Output()
	if err != nil {
		return complaints.Bytes(), err
	}
	return out, nil
}

// await polls until check returns "", and ends the test with its last answer when the time is over.
func (n *node) await(t *testing.T, limit time.Duration, what string, check func(context.Context) string) {
	t.Helper()
	last := ""
	if err := wait.PollUntilContextTimeout(t.Context(), pollEvery, limit, true, func(ctx context.Context) (bool, error) {
		last = check(ctx)
		return last == "", nil
	}); err != nil {
		t.Fatalf("%s: after %v: %s", what, limit, last)
	}
}

// scope is what is looked at for leftovers.
func (n *node) scope() leftovers.Scope {
	return leftovers.Scope{Node: n.name, Dir: n.dir, Programs: []string{"/workload"}, Folders: []string{
		filepath.Join(n.data(), "pods"), filepath.Join(n.data(), "logs"), filepath.Join(n.data(), "local-volumes"),
		filepath.Join(n.data(), "runtime", "sandboxes"), filepath.Join(n.data(), "runtime", "containers"),
	}}
}

func (n *node) look() leftovers.Things { return n.scope().Look() }

func (n *node) nothingLeft(t *testing.T, before leftovers.Things) {
	t.Helper()
	n.await(t, leftTimeMax, "left behind", func(context.Context) string {
		var left []string
		for kind, names := range n.look().Since(before) {
			for _, name := range names {
				left = append(left, kind+": "+name)
			}
		}
		return strings.Join(left, "\n")
	})
}

func (n *node) logLines(t *testing.T) int {
	t.Helper()
	log, err := os.ReadFile(n.log)
	check(t, err)
	return bytes.Count(log, []byte("\n"))
}

func goBuild(t *testing.T, to, folder string) {
	t.Helper()
	build := exec.Command("go", "build", "-o", to, folder)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
}
