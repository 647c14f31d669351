package boot

import "testing"

func TestOptionsOfMounts(t *testing.T) {
	const label, context = "system_u:object_r:container_file_t:s0:c1,c2", `context="system_u:object_r:container_file_t:s0:c1,c2"`
	for name, test := range map[string]struct {
		mount       Mount
		label, want string
	}{
		"no label":                  {Mount{Type: "tmpfs", Data: "mode=755"}, "", "mode=755"},
		"memory":                    {Mount{Type: "tmpfs", Data: "mode=755,size=64m"}, label, "mode=755,size=64m," + context},
		"memory, no option":         {Mount{Type: "tmpfs"}, label, context},
		"terminals":                 {Mount{Type: "devpts", Data: "newinstance,gid=5"}, label, "newinstance,gid=5," + context},
		"processes":                 {Mount{Type: "proc"}, label, ""},
		"the kernel":                {Mount{Type: "sysfs"}, label, ""},
		"control groups":            {Mount{Type: "cgroup2"}, label, ""},
		"queues are labelled later": {Mount{Type: "mqueue"}, label, ""},
	} {
		if got := optionsOf(test.mount, test.label); got != test.want {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got, want := Labelled("lowerdir=a:b,upperdir=u,workdir=w", label), "lowerdir=a:b,upperdir=u,workdir=w,"+context; got != want {
		t.Errorf("a root: %q", got)
	}
}
