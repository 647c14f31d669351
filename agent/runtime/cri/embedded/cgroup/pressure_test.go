package cgroup

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/opencontainers/cgroups"
	"github.com/opencontainers/cgroups/fs2"
)

// TestThePressureOfAGroup reads a folder that looks like a group of cgroup v2.
func TestThePressureOfAGroup(t *testing.T) {
	cgroups.TestMode = true
	defer func() { cgroups.TestMode = false }()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"pids.current": "1", "pids.max": "max", "memory.current": "4096", "memory.max": "max", "memory.stat": "anon 1\n", "cpu.stat": "usage_usec 2\n",
		"cpu.pressure":    "some avg10=1.50 avg60=0.25 avg300=0.10 total=2000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
		"memory.pressure": "some avg10=0.00 avg60=0.00 avg300=0.00 total=3000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=1000\n",
		"io.pressure":     "some avg10=0.00 avg60=0.00 avg300=0.00 total=4000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=5000\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	m, err := fs2.NewManager(&cgroups.Cgroup{Resources: &cgroups.Resources{}}, dir)
	if err != nil {
		t.Fatal(err)
	}
	g := &Group{manager: m, dirs: m.GetPaths()}
	usage, err := g.Usage()
	if err != nil {
		t.Fatal(err)
	}
	if usage.CPUPressure.Some.Avg10 != 1.5 || usage.MemoryPressure.Full.Total != 1000 || usage.IOPressure.Full.Total != 5000 {
		t.Errorf("%+v %+v %+v", usage.CPUPressure, usage.MemoryPressure, usage.IOPressure)
	}
	if err := os.Remove(filepath.Join(dir, "io.pressure")); err != nil { // a kernel without PSI
		t.Fatal(err)
	}
	if usage, err := g.Usage(); err != nil || usage.IOPressure != nil {
		t.Errorf("%+v, %v", usage.IOPressure, err)
	}
}
