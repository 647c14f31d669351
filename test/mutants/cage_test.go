package mutants

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestEveryPageHasAWall: a page that no mutant fails proves nothing.
func TestEveryPageHasAWall(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(moduleRoot, "test/escape/testdata/*.txtar"))
	if err != nil || len(pages) == 0 {
		t.Fatalf("no pages: %v", err)
	}
	var names []string
	for _, page := range pages {
		names = append(names, strings.TrimSuffix(filepath.Base(page), ".txtar"))
	}
	attacked := pagesOf(Walls())
	for _, name := range names {
		if !slices.Contains(attacked, name) {
			t.Errorf("page %s: no mutant takes its wall away", name)
		}
	}
	for _, name := range attacked {
		if !slices.Contains(names, name) {
			t.Errorf("there is no page %s", name)
		}
	}
}

// TestTheCageIsClosed does what an attack would that succeeds.
func TestTheCageIsClosed(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("namespaces need root")
	}
	const name = "out-of-the-cage"
	dir, root := t.TempDir(), absoluteRoot(t)
	before, err := os.Stat("/dev/full")
	if err != nil {
		t.Fatal(err)
	}
	script := `for dir in / /etc /usr /root /home ` + root + ` /sys/kernel; do
	echo > $dir/` + name + ` && echo "wrote in $dir"
done
chmod 600 /dev/full
echo > ` + dir + `/` + name + `
for dir in /sys/fs/cgroup /sys/fs/cgroup/*/; do mkdir $dir/` + name + `; done
ls /tmp/tools && echo tried all`
	output, err := tools{root: root, dir: dir}.inCage(t.Context(), dir, []string{"/bin/sh", "-c", script})
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	after, err := os.Stat("/dev/full")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(string(output), "tried all\n") || strings.Contains(string(output), "wrote in") || after.Mode() != before.Mode() {
		t.Errorf("/dev/full has mode %v, before %v\n%s", after.Mode(), before.Mode(), output)
	}
	for _, pattern := range []string{dir + "/" + name, "/tmp/" + name, groupsDir + "/" + name, groupsDir + "/*/" + name} {
		if found, err := filepath.Glob(pattern); err != nil || len(found) > 0 {
			t.Errorf("it left %v behind, %v", found, err)
		}
	}
}

func TestAnOpenCageIsSeen(t *testing.T) {
	t.Setenv(cageEnv, "")
	if err := checkCage(); !errors.Is(err, errOpenCage) {
		t.Errorf("outside of a cage: %v", err)
	}
	const closed = "21 1 8:1 / / ro,relatime shared:1 - ext4 /dev/root rw\n30 21 0:5 / /tmp rw,nosuid - tmpfs tmpfs rw\n"
	for mounts, open := range map[string]bool{
		closed: false,
		"21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/root rw\n":                 true,
		closed + "31 21 8:2 / /home rw,relatime shared:2 - ext4 /dev/vdb rw\n":    true,
		closed + "31 21 8:2 / /home ro,relatime shared:2 - ext4 /dev/vdb rw\n":    false,
		closed + "31 21 0:6 / /dev rw,nosuid - devtmpfs devtmpfs rw\n":            true,
		closed + "31 21 0:7 / /sys rw,nosuid - sysfs sysfs rw\n":                  true,
		closed + "31 21 0:8 /../../ /sys/fs/cgroup/pids rw - cgroup cgroup rw\n":  true,
		closed + "31 21 0:8 / /sys/fs/cgroup/pids rw,nosuid - cgroup cgroup rw\n": false,
		closed + "31 21 0:9 / /srv rw,nosuid - tmpfs tmpfs rw\n":                  true,
	} {
		if got := errors.Is(checkMounts(mounts), errOpenCage); got != open {
			t.Errorf("open is %v, want %v, with\n%s", got, open, mounts)
		}
	}
}
