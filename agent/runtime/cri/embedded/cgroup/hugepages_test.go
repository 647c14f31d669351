package cgroup

import (
	"os"
	"path/filepath"
	"testing"
)

// TestHugePagesOfBothVersions: limits are written where the group has files for them, and a kernel that counts no huge pages has none.
func TestHugePagesOfBothVersions(t *testing.T) {
	asked := map[string]uint64{"2MB": 4 << 20, "1GB": 0}
	for name, tc := range map[string]struct {
		file  string
		files []string
		want  int
	}{
		"v1":                        {".limit_in_bytes", []string{"hugetlb.2MB.limit_in_bytes", "hugetlb.1GB.limit_in_bytes"}, 2},
		"v2":                        {".max", []string{"hugetlb.2MB.max", "hugetlb.1GB.max"}, 2},
		"a size that is not there":  {".max", []string{"hugetlb.2MB.max"}, 1},
		"without such a controller": {".max", nil, 0},
	} {
		dir := t.TempDir()
		for _, file := range tc.files {
			if err := os.WriteFile(filepath.Join(dir, file), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		got := settable(dir, tc.file, asked)
		for _, limit := range got {
			if limit.Limit != asked[limit.Pagesize] {
				t.Errorf("%s: %+v", name, limit)
			}
		}
		if len(got) != tc.want {
			t.Errorf("%s: %d limits, not %d", name, len(got), tc.want)
		}
	}
	if got := settable("", ".limit_in_bytes", asked); got != nil {
		t.Errorf("a controller that is not mounted: %v", got)
	}
}

// TestHugePagesOfTheMachine: the kernel has the limit if it counts huge pages at all; if not, a group with limits is made without them.
func TestHugePagesOfTheMachine(t *testing.T) {
	g := newGroup(t, "/setpoint-cgroup-test-hugepages")
	t.Cleanup(func() {
		if err := g.Destroy(); err != nil {
			t.Error(err)
		}
	})
	if err := g.Create(Limits{HugePageBytes: map[string]uint64{"2MB": 4 << 20}}); err != nil {
		t.Fatal(err)
	}
	dir, file := g.dirs[hugetlb], ".limit_in_bytes"
	if V2() {
		dir, file = g.dirs[""], ".max"
	}
	text, err := os.ReadFile(filepath.Join(dir, hugetlb+".2MB"+file))
	if HugePages() != (err == nil) || err == nil && string(text) != "4194304\n" {
		t.Errorf("counts %v, limit %q, %v", HugePages(), text, err)
	}
}
