package mutants

// ofPrivileges are walls around what a process may do, and as whom.
var ofPrivileges = []Wall{
	{
		Name: "numbers-among-names", Bug: "a number is looked for among the names of an image's users", Page: "numeric-user",
		Changes: []Change{{
			File: "agent/runtime/cri/embedded/boot/user.go",
			Old:  `(!isNumber && fields[0] == name)`,
			New:  `fields[0] == name`,
		}},
	},
	{
		// An exec has the user that was found when the container started, and what is not a file is not read.
		Name: "accounts-read-from-a-pipe", Bug: "an exec looks its user up, and waits for the one who writes to a pipe",
		Page: "pipe-for-accounts",
		Changes: []Change{
			{
				File: "agent/runtime/cri/embedded/container.go",
				Old:  `c.record.StartedAt, c.record.Process.Identity = state.PID, state.StartedAt, state.Identity`,
				New:  `c.record.StartedAt = state.PID, state.StartedAt`,
			},
			{
				File: "agent/runtime/cri/embedded/boot/user.go",
				Old:  `os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY`,
				New:  `os.O_RDONLY|unix.O_NOCTTY`,
			},
		},
	},
	{
		Name: "host-users-anyway", Bug: "hostUsers: false is not heeded", Page: "user-namespace",
		Changes: []Change{{
			File: "agent/runtime/cri/embedded/users.go",
			Old:  `options.GetMode() != runtimeapi.NamespaceMode_POD {`,
			New:  `options.GetMode() != runtimeapi.NamespaceMode_CONTAINER {`,
		}},
	},
	{
		Name: "capabilities-kept", Bug: "a container has all capabilities of the host's root", Page: "privileges",
		Changes: []Change{{
			File: "agent/runtime/cri/embedded/boot/become.go",
			Old:  `if keep&(1<<capability) != 0 {`,
			New:  `if keep|(1<<capability) != 0 {`,
		}},
	},
	{
		Name: "new-privileges", Bug: "allowPrivilegeEscalation: false is not heeded", Page: "privileges",
		Changes: []Change{{
			File: "agent/runtime/cri/embedded/spec.go",
			Old:  `NoNewPrivs: security.GetNoNewPrivs()`,
			New:  `NoNewPrivs: false`,
		}},
	},
	{
		Name: "unfiltered", Bug: "no filter of system calls is installed", Page: "privileges",
		Changes: []Change{{
			File: "agent/runtime/cri/embedded/boot/become.go",
			Old:  `if len(filter) == 0 {`,
			New:  `if len(filter) >= 0 {`,
		}},
	},
	{
		Name: "filtered-if-asked", Bug: "a pod that names no profile has no filter of system calls", Page: "privileges",
		Changes: []Change{{
			File: "agent/runtime/podconfig/security.go",
			Old:  `if p == nil && in.SeccompDefault {`,
			New:  `if p == nil && !in.SeccompDefault {`,
		}},
	},
	{
		Name: "processes-without-end", Bug: "a pod has as many processes as it likes", Page: "processes",
		Changes: []Change{{
			File: "agent/runtime/cri/embedded/limits.go",
			Old:  `limits.PIDs = cmp.Or(g.config.PodPIDsMax, pids*podPIDsPercent/100)`,
			New:  `limits.PIDs = cmp.Or(pids, pids*podPIDsPercent/100)`,
		}},
	},
	{
		Name: "spared-as-the-agent", Bug: "a command in a container has the agent's score, not the container's", Page: "oom-score",
		Changes: []Change{{
			File: "agent/runtime/cri/embedded/exec.go",
			Old:  `fmt.Sprintf("/proc/%d/oom_score_adj", s.helper.Process.Pid)`,
			New:  `os.DevNull`,
		}},
	},
}
