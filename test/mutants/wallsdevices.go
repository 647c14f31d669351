package mutants

// ofDevices are walls before the host's devices. Two stop whoever opens a node that he has made, the mount and the cgroup: the page tells
// by the error which one it was.
var ofDevices = []Wall{
	{
		Name: "root-with-devices", Bug: "a node in the container's root opens", Page: "device-nodes",
		Changes: []Change{{
			File: "agent/runtime/cri/embedded/boot/mounts.go",
			Old:  "\t\tflags = unix.MS_NODEV\n",
			New:  "\t\tflags = 0\n",
		}},
	},
	{
		Name: "volumes-with-devices", Bug: "a node in a volume opens", Page: "device-nodes",
		Changes: []Change{{
			File: "agent/runtime/cri/embedded/boot/mounts.go",
			Old:  `attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NODEV}`,
			New:  `attr := unix.MountAttr{}`,
		}},
	},
	{
		Name: "dev-with-devices", Bug: "a node that is made in /dev opens", Page: "device-nodes",
		Changes: []Change{{
			File: "agent/runtime/cri/embedded/spec.go",
			Old:  `uintptr(unix.MS_NOSUID | unix.MS_STRICTATIME | unix.MS_NODEV)`,
			New:  `uintptr(unix.MS_NOSUID | unix.MS_STRICTATIME)`,
		}},
	},
	{
		Name: "every-device-allowed", Bug: "the cgroup lets a container use every device", Page: "device-nodes",
		Changes: []Change{{
			File: "agent/runtime/cri/embedded/devices.go",
			Old:  "\treturn c.group.AllowDevices(own)\n",
			New:  "\treturn nil\n",
		}},
	},
	{
		Name: "devices-given-away", Bug: "mode and owner of the host's nodes can be changed", Page: "device-owners",
		Changes: []Change{{
			File: "agent/runtime/cri/embedded/boot/dev.go",
			Old:  `attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}`,
			New:  `attr := unix.MountAttr{}`,
		}},
	},
	{
		// The kernel makes no terminal of anything else, either: the page tells by the message.
		Name: "any-file-as-terminal", Bug: "what the container has at /dev/ptmx is not looked at", Page: "terminal",
		Changes: []Change{{
			File: "agent/runtime/cri/embedded/boot/terminal.go",
			Old:  `stat.Mode&unix.S_IFMT != unix.S_IFCHR || stat.Rdev != unix.Mkdev(5, 2) {`,
			New:  `stat.Mode == 0 {`,
		}},
	},
}
