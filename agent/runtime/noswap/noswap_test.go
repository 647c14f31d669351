package noswap

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func TestWhatIsAskedFor(t *testing.T) {
	for accounting, want := range map[Accounting]*runtimeapi.LinuxContainerResources{
		None:       {MemoryLimitInBytes: 100, Unified: map[string]string{"memory.high": "50"}},
		WithMemory: {MemoryLimitInBytes: 100, MemorySwapLimitInBytes: 100, Unified: map[string]string{"memory.high": "50"}},
		Alone:      {MemoryLimitInBytes: 100, Unified: map[string]string{"memory.high": "50", "memory.swap.max": "0"}},
	} {
		got := &runtimeapi.LinuxContainerResources{MemoryLimitInBytes: 100, Unified: map[string]string{"memory.high": "50"}}
		accounting.Ask(got)
		if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
			t.Errorf("%d: %s", accounting, diff)
		}
	}
	unlimited := &runtimeapi.LinuxContainerResources{}
	if Alone.Ask(unlimited); unlimited.Unified[swapMax] != "0" {
		t.Errorf("without a memory limit: %v", unlimited)
	}
}

func TestLook(t *testing.T) {
	for name, test := range map[string]struct {
		files []string
		own   string
		want  Accounting
	}{
		"v1":                 {[]string{"memory/memory.memsw.limit_in_bytes"}, "5:memory:/\n", WithMemory},
		"v1, not counted":    {[]string{"memory/memory.limit_in_bytes"}, "5:memory:/\n", None},
		"hybrid":             {[]string{"memory/memory.memsw.limit_in_bytes", "unified/cgroup.controllers"}, "5:memory:/\n0::/\n", WithMemory},
		"hybrid, v1 without": {[]string{"memory/memory.limit_in_bytes", "unified/cgroup.controllers"}, "5:memory:/\n0::/\n", None},
		"v2":                 {[]string{"cgroup.controllers", "system.slice/agent/memory.swap.max"}, "0::/system.slice/agent\n", Alone},
		"v2, in the root":    {[]string{"cgroup.controllers", "kubepods/memory.swap.max"}, "0::/\n", Alone},
		"v2, not counted":    {[]string{"cgroup.controllers", "system.slice/agent/memory.max"}, "0::/system.slice/agent\n", None},
	} {
		root := t.TempDir()
		for _, file := range test.files {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(root, file)), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(root, file), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got := look(root, test.own); got != test.want {
			t.Errorf("%s: %d", name, got)
		}
	}
}
