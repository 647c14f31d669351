package nodefaults

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/setpoint-io/setpoint/agent/net/network/networktest"
)

// faults are in the order in which they are played; all have one node, so that what one leaves behind harms the next.
var faults = []struct {
	name string
	play func(t *testing.T, n *node)
}{
	{"agent is killed", agentIsKilled},
	{"shim and pause are killed", shimIsKilled},
	{"shim hangs", shimHangs},
	{"cgroups are lost", groupsAreLost},
	{"disk is read-only", diskIsReadOnly},
	{"disk is full", diskIsFull},
	{"volume driver hangs", driverHangs},
	{"clock jumps", clockJumps},
	{"one tenant takes what he can", attack},
	{"crowd", crowd},
}

// rounds is how often something is done, or to how many: less with -short.
func rounds(whole, short int) int {
	if testing.Short() {
		return short
	}
	return whole
}

const (
	seedVariable = "NODEFAULTS_SEED"
	podsVariable = "NODEFAULTS_PODS"
	// beneathVariable is set in the process that runs the tests.
	beneathVariable = "NODEFAULTS_BENEATH"
)

// TestMain runs the tests in namespaces of their own: with the PID namespace end all processes, with the mount namespace
// all mounts, with the network namespace all interfaces.
func TestMain(m *testing.M) {
	networktest.Enter(unix.CLONE_NEWNET | unix.CLONE_NEWNS | unix.CLONE_NEWPID)
	if os.Geteuid() == 0 && os.Getenv(beneathVariable) == "" {
		// What the machine mounts meanwhile is no pod's.
		err := errors.Join(unix.Mount("", "/", "", unix.MS_PRIVATE|unix.MS_REC, ""),
			unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NOEXEC|unix.MS_NODEV, ""))
		if err != nil {
			fmt.Fprintln(os.Stderr, "mounts and processes of the tests:", err)
			os.Exit(1)
		}
		os.Exit(beneathInit())
	}
	os.Exit(m.Run())
}

// beneathInit runs the tests as a child of this process, which is the namespace's first: it collects what agents that are killed leave
// behind, as the first process of a machine does.
func beneathInit() (code int) {
	tests := exec.Command("/proc/self/exe", os.Args[1:]...)
	tests.Stdout, tests.Stderr = os.Stdout, os.Stderr
	tests.Env = append(os.Environ(), beneathVariable+"=1")
	if err := tests.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "the tests:", err)
		return 1
	}
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			fmt.Fprintln(os.Stderr, "the tests:", err)
			return 1
		case pid == tests.Process.Pid && status.Exited():
			return status.ExitStatus()
		case pid == tests.Process.Pid:
			fmt.Fprintln(os.Stderr, "the tests:", status.Signal())
			return 1
		}
	}
}

// TestFaults plays the faults, one after the other. What must be true of each is said at its function.
func TestFaults(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: the pods are real containers")
	}
	n := startNode(t)
	n.random = rand.New(rand.NewPCG(seed(t), 0))
	n.bystander = startBystander(t, n)
	for _, fault := range faults {
		if !t.Run(fault.name, func(t *testing.T) { n.suffer(t, fault.play) }) {
			return // what it left harms the next
		}
	}
}

// suffer plays one fault and looks around afterwards.
func (n *node) suffer(t *testing.T, play func(*testing.T, *node)) {
	before, lines, began := n.look(), n.logLines(t), time.Now()
	watch, twice := n.bystander.watch(t), lookForTwins(t)
	play(t, n)
	if found := twice(); found != "" {
		t.Errorf("ran twice at a time: %s", found)
	}
	n.tell(t)
	n.deletePods(t)
	watch.end(t)
	n.nothingLeft(t, before)
	t.Logf("%v; the agent wrote %d lines", time.Since(began).Round(time.Millisecond), n.logLines(t)-lines)
}

func seed(t *testing.T) uint64 {
	chosen := uint64(time.Now().UnixNano())
	if text := os.Getenv(seedVariable); text != "" {
		var err error
		chosen, err = strconv.ParseUint(text, 10, 64)
		check(t, err)
	}
	t.Logf("%s=%d", seedVariable, chosen)
	return chosen
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
