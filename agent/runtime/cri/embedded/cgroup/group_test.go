package cgroup

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
)

func newGroup(t *testing.T, path string) *Group {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: cgroups")
	}
	g, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestGroupLifecycle(t *testing.T) {
	const parent = "/setpoint-cgroup-test"
	pod, g := newGroup(t, parent), newGroup(t, parent+"/main")
	t.Cleanup(func() {
		if err := pod.Destroy(); err != nil {
			t.Error(err)
		}
	})
	limits := Limits{CPUShares: 512, CPUQuota: 50000, CPUPeriod: 100000, MemoryBytes: 64 << 20, PIDs: 50}
	for range 2 {
		if err := g.Create(limits); err != nil {
			t.Fatal(err)
		}
	}
	usage, err := g.Usage()
	if err != nil || usage.MemoryLimitBytes != 64<<20 {
		t.Errorf("usage %+v %v", usage, err)
	}
	if err := g.Set(Limits{MemoryBytes: 128 << 20}); err != nil {
		t.Fatal(err)
	}
	sleeper := exec.Command("sleep", "1000")
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	if err := g.Add(sleeper.Process.Pid); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- sleeper.Wait() }()
	if err := g.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil {
		t.Error("the process ended well")
	}
	if g.OOMKills() != 0 {
		t.Error("killed for memory?")
	}
	for range 2 {
		if err := g.Destroy(); err != nil {
			t.Fatal(err)
		}
	}
	if err := g.Kill(); err != nil {
		t.Errorf("kill what is gone: %v", err)
	}
}

// TestEndFindsWhoHasEnteredOneHierarchy: with v1 a process that enters a group is for a moment in some of its directories only.
func TestEndFindsWhoHasEnteredOneHierarchy(t *testing.T) {
	g := newGroup(t, "/setpoint-cgroup-entering")
	for _, dir := range g.Dirs() {
		if err := g.Create(Limits{}); err != nil {
			t.Fatal(err)
		}
		sleeper := exec.Command("sleep", "1000")
		if err := sleeper.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- sleeper.Wait() }()
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(sleeper.Process.Pid)), 0); err != nil {
			t.Fatal(err)
		}
		if err := End("/setpoint-cgroup-entering"); err != nil {
			t.Errorf("%s: %v", dir, err)
			_ = sleeper.Process.Kill()
		}
		if err := <-ended; err == nil {
			t.Error("the process ended well")
		}
	}
}

func TestDirsAndMountsAreAbsolute(t *testing.T) {
	g := newGroup(t, "/setpoint-cgroup-test-paths")
	if len(g.Dirs()) == 0 {
		t.Error("no directories")
	}
	if V2() != (g.Mounts() == nil) {
		t.Errorf("mounts %v", g.Mounts())
	}
}

func TestOnlyAllowedDevicesOpen(t *testing.T) {
	g := newGroup(t, "/setpoint-cgroup-test-devices")
	if err := g.Create(Limits{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Destroy(); err != nil {
			t.Error(err)
		}
	})
	read := func() error {
		// The shell waits until it is in the group.
		shell := exec.Command("sh", "-c", "read go && : < /dev/null && : < /dev/kmsg")
		stdin, err := shell.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := shell.Start(); err != nil {
			t.Fatal(err)
		}
		if err := g.Add(shell.Process.Pid); err != nil {
			t.Fatal(err)
		}
		if _, err := stdin.Write([]byte("\n")); err != nil {
			t.Fatal(err)
		}
		return shell.Wait()
	}
	if err := read(); err != nil {
		t.Errorf("a new group: %v", err)
	}
	if err := g.AllowDevices(nil); err != nil {
		t.Fatal(err)
	}
	if err := read(); err == nil {
		t.Error("the kernel's log was opened")
	}
	if err := g.AllowDevices([]Device{{Major: 1, Minor: 11, Access: "r"}}); err != nil {
		t.Fatal(err)
	}
	if err := read(); err != nil {
		t.Errorf("an allowed device: %v", err)
	}
}
