package nodefaults

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	fillRounds, fillRoundsShort = 10, 4
	// fillTimeMax is within which a disk is filled after a pod has been created, and for how long it is full.
	fillTimeMax = 150 * time.Millisecond
	// takeEvery is how soon what is freed on a full disk is taken.
	takeEvery = 5 * time.Millisecond
)

// diskIsReadOnly: the agent's disk takes no more writes, as after an error of it. Pods that run go on, also with exec; one that is to
// start says why it does not, and so does one that is to end; an agent that is started then says why it cannot, and ends. Once the
// disk is as before all of them get where they were to be.
//
// The disk is mounted again on itself for that: what is open stays open for writing, as no file system lets go of its writers.
func diskIsReadOnly(t *testing.T, n *node) {
	n.create(t, newPod("runs"), newPod("ends"))
	n.awaitReady(t, "runs", "ends")
	check(t, unix.Mount(n.data(), n.data(), "", unix.MS_BIND|unix.MS_REC, ""))
	check(t, unix.Mount("", n.data(), "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""))
	n.create(t, newPod("new"))
	n.delete(t, "ends")
	n.awaitTold(t, "new", "read-only file system")
	n.awaitTold(t, "ends", "read-only file system")
	n.mustExec(t, "runs")
	n.bystander.awaitProbes(t)
	n.killAgent(t)
	n.startAgent(t)
	n.agentGivesUp(t, "read-only file system")
	check(t, unix.Unmount(n.data(), unix.MNT_DETACH))
	n.startAgent(t)
	n.awaitReady(t, "new", "runs")
	n.awaitDeleted(t, "ends")
}

func (n *node) mustExec(t *testing.T, pod string) {
	t.Helper()
	if out, err := n.run("kubectl", "exec", pod, "--", "/workload", "tell", "here"); err != nil || string(out) != "here\n" {
		t.Errorf("exec in %s: %v %s", pod, err, out)
	}
}

// diskIsFull: there is no byte left for the agent, from the middle of pods' starts. Pods that run go on, also with exec; those that are to
// start say why they do not; pods that are deleted go; an agent that is started again starts. Once there is room again all get where they were to be, without help.
func diskIsFull(t *testing.T, n *node) {
	n.create(t, newPod("runs"), newPod("ends"))
	n.awaitReady(t, "runs", "ends")
	var names []string
	for i := range rounds(fillRounds, fillRoundsShort) { // in the middle of something else each time
		pod := killPod(fmt.Sprintf("new-%d", i), i)
		names = append(names, pod.Name)
		n.create(t, pod)
		n.pause(t, fillTimeMax)
		full := n.fill(t)
		n.pause(t, fillTimeMax)
		full.end(t)
	}
	full := n.fill(t)
	n.create(t, newPod("last"))
	n.awaitTold(t, "last", "no space left on device")
	n.mustExec(t, "runs")
	n.killAgent(t)
	n.startAgent(t)
	n.bystander.awaitProbes(t)
	n.mustExec(t, "runs")
	n.delete(t, "ends")
	n.awaitDeleted(t, "ends")
	n.bystander.awaitProbes(t)
	full.end(t)
	n.awaitReady(t, append(names, "last", "runs")...)
}

func (n *node) ballast() string { return filepath.Join(n.data(), "ballast") }

// filling is a disk on which nothing fits.
type filling struct {
	n    *node
	stop context.CancelFunc
	done chan error
}

// fill writes until nothing fits, and writes on, so that whatever somebody frees is taken.
func (n *node) fill(t *testing.T) *filling {
	t.Helper()
	used := diskBytes - n.free(t)
	check(t, unix.Mount("", n.data(), "", unix.MS_REMOUNT, fmt.Sprintf("size=%d", used+1<<20))) // few bytes are quickly written
	check(t, take(n.ballast()))
	ctx, stop := context.WithCancel(t.Context())
	full := &filling{n: n, stop: stop, done: make(chan error, 1)}
	go func() {
		full.done <- wait.PollUntilContextCancel(ctx, takeEvery, false, func(context.Context) (bool, error) {
			return false, take(n.ballast())
		})
	}()
	return full
}

// take adds to a file until nothing fits.
func take(path string) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if errors.Is(err, unix.ENOSPC) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	for block := make([]byte, 1<<12); err == nil; {
		_, err = file.Write(block)
	}
	if errors.Is(err, unix.ENOSPC) {
		return nil
	}
	return err
}

func (n *node) free(t *testing.T) int64 {
	t.Helper()
	var stat unix.Statfs_t
	check(t, unix.Statfs(n.data(), &stat))
	return int64(stat.Bfree) * stat.Bsize
}

// end makes room again.
func (f *filling) end(t *testing.T) {
	t.Helper()
	f.stop()
	if err := <-f.done; !errors.Is(err, context.Canceled) {
		t.Errorf("filling the disk: %v", err)
	}
	check(t, os.Remove(f.n.ballast()))
	check(t, unix.Mount("", f.n.data(), "", unix.MS_REMOUNT, fmt.Sprintf("size=%d", diskBytes)))
}
