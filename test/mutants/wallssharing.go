package mutants

// ofSharing are walls between what runs on one kernel: containers, the runtime's own processes, the host.
var ofSharing = []Wall{
	{
		Name: "program-writable", Bug: "the file of the runtime's program can be changed by who gets hold of it", Page: "executable",
		Changes: []Change{{
			File: "agent/runtime/cri/embedded/executable/executable.go",
			Old:  `unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID`,
			New:  `unix.MOUNT_ATTR_NOSUID`,
		}},
	},
	{
		Name: "abstract-shims", Bug: "shims listen where everybody in their network namespace reaches them", Page: "abstract-sockets",
		Changes: []Change{
			{
				File: "agent/runtime/cri/embedded/shim/main.go",
				Old:  `&net.UnixAddr{Name: SocketName, Net: "unix"}`,
				New:  `&net.UnixAddr{Name: "@" + dir, Net: "unix"}`,
			},
			{
				File: "agent/runtime/cri/embedded/shim/client.go",
				Old:  `fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), SocketName)`,
				New:  `"@"+c.dir`,
			},
		},
	},
	{
		Name: "hosts-keyring", Bug: "a container searches the keys of who started the agent", Page: "keyrings",
		Changes: []Change{{
			File: "agent/runtime/cri/embedded/boot/keyring.go",
			Old:  "\tkeyring, err := unix.KeyctlInt(unix.KEYCTL_JOIN_SESSION_KEYRING, 0, 0, 0, 0)\n",
			New:  "\tkeyring, err := 0, error(unix.ENOSYS)\n",
		}},
	},
	{
		Name: "hosts-keyring-for-execs", Bug: "a command in a container searches the keys of who started the agent", Page: "keyrings",
		Changes: []Change{{
			File: "agent/runtime/cri/embedded/boot/exec.go",
			Old:  "\tif err := newKeyring(); err != nil {\n",
			New:  "\tif err := error(nil); err != nil {\n",
		}},
	},
	{
		Name: "keyring-for-the-user", Bug: "who has the number of a keyring, and the same user, uses it", Page: "keyrings",
		Changes: []Change{{
			File: "agent/runtime/cri/embedded/boot/keyring.go",
			Old:  `const keyringPossessor = 0x3f000000`,
			New:  `const keyringPossessor = 0x3f3f0000`,
		}},
	},
	{
		Name: "capable-pause", Bug: "process 1 of a pod keeps its capabilities", Page: "shared-processes",
		Changes: []Change{{
			File: "agent/runtime/cri/embedded/boot/pause.go",
			Old:  `restrict(&Process{NoNewPrivs: true})`,
			New:  `restrict(&Process{NoNewPrivs: true, Bounding: 1<<41 - 1})`,
		}},
	},
	{
		Name: "pause-with-a-writable-root", Bug: "a tracer writes by the root of process 1", Page: "shared-processes",
		Changes: []Change{{
			File: "agent/runtime/cri/embedded/boot/pause.go",
			Old:  `attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}`,
			New:  `attr := unix.MountAttr{}`,
		}},
	},
	{
		Name: "open-pause", Bug: "who may not trace looks at process 1, too", Page: "shared-processes",
		Changes: []Change{{
			File: "agent/runtime/cri/embedded/boot/pause.go",
			Old:  `unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)`,
			New:  `unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0)`,
		}},
	},
	{
		Name: "hosts-processes", Bug: "a container is among the processes of the host", Page: "namespaces",
		Changes: []Change{{
			File: "agent/runtime/cri/embedded/shim/container.go",
			Old:  `flags |= unix.CLONE_NEWPID`,
			New:  `flags |= 0`,
		}},
	},
	{
		Name: "hosts-name", Bug: "a pod names the machine", Page: "namespaces",
		Changes: []Change{{
			File: "agent/runtime/cri/embedded/shimstart.go",
			Old:  `flags |= unix.CLONE_NEWNET | unix.CLONE_NEWUTS`,
			New:  `flags |= unix.CLONE_NEWNET`,
		}},
	},
	{
		Name: "routers-believed", Bug: "the host takes routes from a pod", Page: "router",
		Changes: []Change{{
			File: "agent/net/network/bridge.go",
			Old:  `[]string{"accept_ra", "accept_redirects"}`,
			New:  `[]string{"accept_redirects"}`,
		}},
	},
	{
		Name: "past-the-host", Bug: "a pod sends frames to another pod", Page: "neighbours",
		Changes: []Change{{
			File: "agent/net/network/guard/ruleset.go",
			Old: "\tr.add(fromPod, unicast(expr.CmpOpEq), " +
				"[]expr.Any{&expr.Cmp{Op: expr.CmpOpNeq, Register: firstRegister, Data: bridge}, drop})\n",
			New: "",
		}},
	},
	{
		Name: "frames-to-all", Bug: "a pod sends frames to all others at once", Page: "neighbours",
		Changes: []Change{{
			File: "agent/net/network/guard/ruleset.go",
			Old:  "\tr.add(r.chain(\"forward\", nftables.ChainHookForward), fromGuarded(), unicast(expr.CmpOpNeq), []expr.Any{drop})\n",
			New:  "",
		}},
	},
	{
		Name: "ports-of-the-node", Bug: "a pod reaches whatever listens on its node", Page: "node-ports",
		Changes: []Change{{
			File: "agent/net/hostfirewall/table.go",
			Old:  "\tr.add(input, append(from(bridge), jump)...)\n\tfor _, p := range pods {\n",
			New:  "\tfor _, p := range pods[:0] {\n\t\tr.add(input, append(from(bridge), jump)...)\n",
		}},
	},
	{
		Name: "arp-of-others", Bug: "a pod claims the address of another", Page: "frames",
		Changes: []Change{{
			File: "agent/net/network/guard/ruleset.go",
			Old:  `map[uint16]uint32{unix.ETH_P_IP: four.Source, unix.ETH_P_ARP: arpSenderOffset}`,
			New:  `map[uint16]uint32{unix.ETH_P_IP: four.Source}`,
		}},
	},
	{
		Name: "packets-of-others", Bug: "a pod sends packets in the name of another", Page: "frames",
		Changes: []Change{{
			File: "agent/net/network/guard/ruleset.go",
			Old:  `map[uint16]uint32{unix.ETH_P_IP: four.Source, unix.ETH_P_ARP: arpSenderOffset}`,
			New:  `map[uint16]uint32{unix.ETH_P_ARP: arpSenderOffset}`,
		}},
	},
}
