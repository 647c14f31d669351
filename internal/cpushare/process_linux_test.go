package cpushare

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// tree is a folder with these files.
func tree(t *testing.T, files map[string]string) string {
	root := t.TempDir()
	for name, text := range files {
		name = filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// TestSampleOfAProcess: the waits of all threads are added up, and the machine's line is read to its end.
func TestSampleOfAProcess(t *testing.T) {
	root := tree(t, map[string]string{
		"proc/self/task/7/schedstat": "5000 2000000 3\n",
		"proc/self/task/9/schedstat": "6000 3000000 3\n",
		"proc/self/task/8/other":     "",
		"proc/stat":                  "cpu  1 2 3 400 5 6 7 8 0 0\ncpu0 1 2 3 400 5 6 7 8 0 0\n",
		"proc/self/cgroup":           "0::/\n",
		"groups/cpu.max":             "50000 100000\n",
	})
	p := process{proc: filepath.Join(root, "proc"), cgroups: filepath.Join(root, "groups")}
	got := p.sample()
	if got.Ran <= 0 {
		t.Error("it has not run")
	}
	got.Ran = 0
	want := Sample{Waited: 5 * time.Millisecond, Worked: 190 * time.Millisecond, Stolen: 80 * time.Millisecond, Processors: 0.5}
	if got != want {
		t.Errorf("it is %+v, want %+v", got, want)
	}
	nowhere := process{proc: filepath.Join(root, "none"), cgroups: filepath.Join(root, "none")}
	if got := nowhere.sample(); got.Waited != 0 || got.Worked != 0 || got.Stolen != 0 || got.Processors < 1 {
		t.Errorf("without a proc file system it is %+v", got)
	}
}

// TestQuotaOfGroups: the least one of all levels counts, of both versions, and also where a container sees its own group as the root.
func TestQuotaOfGroups(t *testing.T) {
	for name, c := range map[string]struct {
		groups string
		files  map[string]string
		want   float64
	}{
		"none":             {"0::/a/b\n", map[string]string{"a/b/cpu.max": "max 100000\n"}, 0},
		"its own":          {"0::/a/b\n", map[string]string{"a/b/cpu.max": "150000 100000\n"}, 1.5},
		"that of a parent": {"0::/a/b\n", map[string]string{"a/b/cpu.max": "max 100000\n", "a/cpu.max": "50000 100000\n"}, 0.5},
		"the least":        {"0::/a/b\n", map[string]string{"a/b/cpu.max": "20000 100000\n", "a/cpu.max": "50000 100000\n"}, 0.2},
		"of a container":   {"0::/\n", map[string]string{"cpu.max": "200000 100000\n"}, 2},
		"outside of it":    {"0::/../x\n", map[string]string{"cpu.max": "200000 100000\n"}, 2},
		"the first version": {"9:name=systemd:/x\n2:cpuset:/y\n1:cpu,cpuacct:/a\n0::/x\n",
			map[string]string{"cpu/a/cpu.cfs_quota_us": "30000\n", "cpu/a/cpu.cfs_period_us": "100000\n"}, 0.3},
		"the first version, none": {"1:cpu:/a\n", map[string]string{"cpu/a/cpu.cfs_quota_us": "-1\n", "cpu/a/cpu.cfs_period_us": "100000\n"}, 0},
		"nonsense":                {"\nx\n0::/\n", map[string]string{"cpu.max": "many 0\n"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			groups := tree(t, c.files)
			proc := tree(t, map[string]string{"self/cgroup": c.groups})
			if got := quota(proc, groups); got != c.want {
				t.Errorf("it is %v, want %v", got, c.want)
			}
		})
	}
}

// TestThisProcess: the kernel tells what is read, and the counts grow.
func TestThisProcess(t *testing.T) {
	sample := Process()
	first := sample()
	for begun := time.Now(); sample().Worked <= first.Worked; { // a tick of work, at least
		if time.Since(begun) > time.Minute {
			t.Fatal("the machine has not worked")
		}
	}
	if then := sample(); then.Ran <= first.Ran || then.Waited < first.Waited || first.Processors <= 0 {
		t.Errorf("first %+v, then %+v", first, then)
	}
}

func BenchmarkSample(b *testing.B) {
	for sample := Process(); b.Loop(); {
		sample()
	}
}
