package machine

import (
	"testing"

	"golang.org/x/sys/unix"
)

func TestParseMount(t *testing.T) {
	for name, c := range map[string]struct {
		line string
		want mount
		ok   bool
	}{
		"read-only cgroup": {
			line: "700 690 0:30 /docker/abc /sys/fs/cgroup/memory ro,nosuid,nodev,noexec,relatime master:9 - cgroup cgroup rw,memory",
			want: mount{"/sys/fs/cgroup/memory", true, unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC | unix.MS_RELATIME, ""},
			ok:   true,
		},
		"writable root": {line: "1 0 0:50 / / rw,relatime - overlay overlay ro", want: mount{"/", false, unix.MS_RELATIME, ""}, ok: true},
		"a container's root": {
			line: "158 83 0:47 / / rw,relatime - overlay overlay rw,lowerdir=a,upperdir=/my\\040data/upper,workdir=/w",
			want: mount{"/", false, unix.MS_RELATIME, "/my data/upper"}, ok: true,
		},
		"a path with a space": {line: "1 0 0:50 / /my\\040data rw - tmpfs tmpfs rw", want: mount{path: "/my data"}, ok: true},
		"cut short":           {line: "1 0 0:50 /"},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := parseMount(c.line)
			if got != c.want || ok != c.ok {
				t.Errorf("parseMount = %+v, %v; want %+v, %v", got, ok, c.want, c.ok)
			}
		})
	}
}

func TestOnlyWhatPodsNeedBecomesWritable(t *testing.T) {
	for path, want := range map[string]bool{
		"/proc/sys": true, "/proc/sys/net": true, "/sys/fs/cgroup": true, "/sys/fs/cgroup/cpu": true,
		"/proc/sysrq-trigger": false, "/sys": false, "/proc/bus": false,
	} {
		if wanted(path) != want {
			t.Errorf("wanted(%q) = %v", path, !want)
		}
	}
}
