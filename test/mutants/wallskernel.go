package mutants

// ofKernelTrees are walls around /proc and /sys.
var ofKernelTrees = []Wall{
	{
		Name: "anything-at-proc", Bug: "a volume of any kind is mounted at /proc", Page: "proc-volume",
		Changes: []Change{{
			File: "agent/runtime/cri/embedded/boot/kerneltree.go",
			Old:  "\t\treturn errFakeProc\n",
			New:  "\t\treturn nil\n",
		}},
	},
	{
		// The volume that would be mounted over procfs is refused, too.
		Name: "proc-where-a-link-leads", Bug: "procfs is mounted where a link of the image leads, and a volume over it", Page: "proc-link",
		Changes: []Change{
			{
				File: "agent/runtime/cri/embedded/boot/kerneltree.go",
				Old:  `unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_SYMLINKS`,
				New:  `unix.RESOLVE_IN_ROOT`,
			},
			partsOfProc,
		},
	},
	{
		Name: "volume-over-a-part-of-proc", Bug: "a volume covers a part of /proc", Page: "proc-parts",
		Changes: []Change{partsOfProc},
	},
	{
		Name: "masked-with-the-pods-null", Bug: "paths are masked with what the container has at /dev/null", Page: "masked-paths",
		Changes: []Change{{
			File: "agent/runtime/cri/embedded/boot/harden.go",
			Old:  "\tnull, err := openNullTree()\n",
			New: `	fd, err := root.open("/dev/null", unix.O_PATH)
	if err != nil {
		return err
	}
	null := tree{}
	null.FD, err = unix.OpenTree(fd, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH)
`,
		}},
	},
	{
		Name: "nothing-masked", Bug: "files of the kernel about the whole machine are seen", Page: "kernel-trees",
		Changes: []Change{{
			File: "agent/runtime/cri/embedded/boot/harden.go",
			Old:  "range spec.MaskedPaths {",
			New:  "range spec.MaskedPaths[:0] {",
		}},
	},
	{
		Name: "kernel-parameters-writable", Bug: "/proc/sys and the like are not read-only", Page: "kernel-trees",
		Changes: []Change{{
			File: "agent/runtime/cri/embedded/boot/harden.go",
			Old:  "range spec.ReadonlyPaths {",
			New:  "range spec.ReadonlyPaths[:0] {",
		}},
	},
	{
		Name: "sys-writable", Bug: "/sys is not read-only", Page: "kernel-trees",
		Changes: []Change{{
			File: "agent/runtime/cri/embedded/spec.go",
			Old:  `sysFlags := uintptr(noSuidExecDev | unix.MS_RDONLY)`,
			New:  `sysFlags := uintptr(noSuidExecDev)`,
		}},
	},
	{
		// The first is for cgroup v2, the second for v1.
		Name: "cgroups-writable", Bug: "a container makes groups, and moves processes", Page: "cgroups",
		Changes: []Change{
			{
				File: "agent/runtime/cri/embedded/spec.go",
				Old:  `Target: "/sys/fs/cgroup", Flags: sysFlags}`,
				New:  `Target: "/sys/fs/cgroup", Flags: noSuidExecDev}`,
			},
			{
				File: "agent/runtime/cri/embedded/boot/dev.go",
				Old:  `attr.Attr_set |= unix.MOUNT_ATTR_RDONLY`,
				New:  `attr.Attr_set |= 0`,
			},
		},
	},
	{
		Name: "values-split", Bug: "the value of a sysctl sets another one", Page: "sysctl-values",
		Changes: []Change{
			{
				File: "agent/runtime/cri/embedded/boot/pause.go",
				Old:  "\t\"runtime\"\n",
				New:  "\t\"runtime\"\n\t\"strings\"\n",
			},
			{
				File: "agent/runtime/cri/embedded/boot/pause.go",
				Old:  "\tfor name, value := range s.Sysctls {\n",
				New: `	for name, value := range s.Sysctls {
		first, rest, _ := strings.Cut(value, "+")
		other, text, _ := strings.Cut(rest, "=")
		value = first
		_ = os.WriteFile("/proc/sys/"+strings.ReplaceAll(other, ".", "/"), []byte(text), 0)
`,
			},
		},
	},
	{
		// The agent has upstream's list, the runtime knows what is in a namespace.
		Name: "any-sysctl", Bug: "a pod sets parameters of the whole machine", Page: "sysctls",
		Changes: []Change{
			{
				File: "agent/runtime/podconfig/sysctls.go",
				Old:  "\t\t\treturn fmt.Errorf(\"forbidden sysctl: %q not allowlisted\", name)\n",
				New:  "\t\t\tcontinue\n",
			},
			{
				File: "agent/runtime/cri/embedded/sysctls.go",
				Old:  "\tdefault:\n\t\treturn false\n",
				New:  "\tdefault:\n\t\treturn true\n",
			},
		},
	},
}

var partsOfProc = Change{
	File: "agent/runtime/cri/embedded/boot/kerneltree.go",
	Old:  "\t\treturn errOverProc\n",
	New:  "\t\treturn nil\n",
}
