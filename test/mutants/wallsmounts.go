package mutants

// ofMounts are walls against links and paths that lead out of a volume, an image or a container's root.
var ofMounts = []Wall{
	{
		Name: "subpath-follows-links", Bug: "links of a volume are followed on the host", Page: "subpath-link",
		Changes: []Change{{
			File: "agent/volumes/mounts.go",
			Old:  `Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS}`,
			New:  `Resolve: 0}`,
		}},
	},
	{
		// As long as starting mount(8) took where this was the bug.
		Name: "subpath-opened-again", Bug: "what is mounted is looked up a second time, by its path", Page: "subpath-swap",
		Changes: []Change{
			{
				File: "agent/volumes/mounts.go",
				Old:  `return os.NewFile(uintptr(fd), sub), nil`,
				New:  `return os.NewFile(uintptr(fd), filepath.Join(volume, sub)), nil`,
			},
			{
				File: "agent/volumes/mounts.go",
				Old:  `source := fmt.Sprintf("/proc/self/fd/%d", f.Fd())`,
				New:  "time.Sleep(50 * time.Millisecond)\n\tsource := f.Name()",
			},
			{
				File: "agent/volumes/mounts.go",
				Old:  "\t\"strings\"\n",
				New:  "\t\"strings\"\n\t\"time\"\n",
			},
		},
	},
	{
		Name: "subpath-is-opened", Bug: "a pipe in a volume is opened, not only found", Page: "subpath-pipe",
		Changes: []Change{{
			File: "agent/volumes/mounts.go",
			Old:  `Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve:`,
			New:  `Flags: unix.O_RDONLY | unix.O_CLOEXEC, Resolve:`,
		}},
	},
	{
		Name: "target-follows-links", Bug: "targets of mounts are looked up on the host", Page: "mount-target",
		Changes: []Change{{
			File: "agent/runtime/cri/embedded/boot/target.go",
			Old:  `unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS`,
			New:  `0`,
		}},
	},
	{
		Name: "image-follows-links", Bug: "a sub-path of an image is looked up on the host", Page: "image-volume",
		Changes: []Change{{
			File: "agent/runtime/cri/embedded/boot/images.go",
			Old:  `unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS`,
			New:  `0`,
		}},
	},
	{
		Name: "read-only-at-the-top", Bug: "recursiveReadOnly leaves what is mounted below writable", Page: "recursive-read-only",
		Changes: []Change{{
			File: "agent/runtime/cri/embedded/boot/mounts.go",
			Old:  `flags |= unix.AT_RECURSIVE`,
			New:  `flags |= 0`,
		}},
	},
	{
		// Each alone is enough: no descriptor of the host is open, and a directory that has no path is refused.
		Name: "host-as-working-directory", Bug: "a descriptor of the host's root is open while a container starts, and may be its directory",
		Page: "working-directory",
		Changes: []Change{
			inheritedDescriptors,
			{
				File: "agent/runtime/cri/embedded/boot/become.go",
				Old:  `if _, err := unix.Getwd(); err != nil {`,
				New:  `if _, err := unix.Getwd(); false {`,
			},
		},
	},
	{
		// The agent closes them, and who becomes a container does it again.
		Name: "descriptors-inherited", Bug: "a container gets what the agent was started with", Page: "descriptors",
		Changes: []Change{
			inheritedDescriptors,
			{
				File: "agent/runtime/cri/embedded/boot/become.go",
				Old:  `unix.CloseRange(SpecFD, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)`,
				New:  `unix.CloseRange(SpecFD, min(ReportFD, math.MaxUint32), unix.CLOSE_RANGE_CLOEXEC)`,
			},
		},
	},
	{
		Name: "descriptors-for-execs", Bug: "a command in a container gets what the agent was started with", Page: "descriptors",
		Changes: []Change{
			inheritedDescriptors,
			{
				File: "agent/runtime/cri/embedded/boot/exec.go",
				Old:  `unix.CloseRange(SpecFD, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)`,
				New:  `unix.CloseRange(SpecFD, min(ReportFD, math.MaxUint32), unix.CLOSE_RANGE_CLOEXEC)`,
			},
		},
	},
}

var inheritedDescriptors = Change{
	File: "agent/runtime/cri/embedded/runtime.go",
	Old:  `if err := unix.CloseRange(inheritedFDMin, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {`,
	New:  `if err := unix.CloseRange(math.MaxInt32, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {`,
}
