package boot

// Spec describes one container's main process.
type Spec struct {
	ID     string
	Rootfs Rootfs
	Mounts []Mount
	// Privileged containers see every host device and keep device nodes usable in their root.
	Privileged bool
	Devices    []Device
	// MaskedPaths are hidden, ReadonlyPaths remounted read-only; absolute, inside the container.
	MaskedPaths   []string
	ReadonlyPaths []string
	Cgroup        Cgroup
	// OOMScoreAdj is -1000..1000; a value below what this machine lets us set is clamped, not an error.
	OOMScoreAdj int
	// SharedPID, if not 0, is the process (the host's number) whose PID namespace the container joins.
	SharedPID int
	// Label is the SELinux label of the files that the container makes; empty is none.
	Label string `json:",omitempty"`
	// Users, if not nil, are the container's own; NewPID then asks for a PID namespace among them.
	Users   *Users `json:",omitempty"`
	NewPID  bool   `json:",omitempty"`
	Process Process
}

// ForksMain tells whether the main process is another than the one that boots.
func (s *Spec) ForksMain() bool { return s.SharedPID != 0 || s.Users != nil }

// Process is what execve gets, for a container's main process and for a later command alike.
type Process struct {
	Args []string
	Env  []string
	Cwd  string
	User User
	// Identity is what User meant when the container started; nil looks User up in the container's files.
	Identity *Identity `json:",omitempty"`
	// Bounding is the capability set as a bit mask (bit n = capability n).
	Bounding   uint64
	NoNewPrivs bool
	// Seccomp is a compiled filter: struct sock_filter, 8 bytes each; empty means unconfined.
	Seccomp []byte
	// AppArmor is the profile that execve takes on; empty means that of this process.
	AppArmor string `json:",omitempty"`
	// SELinux is the label that execve takes on; empty means what the policy says.
	SELinux string `json:",omitempty"`
	Tty     bool
}

// User is the user to run as. UID and GID win over Name; names are looked up in the container's own files.
type User struct {
	// Name is "user", "uid", "user:group" or "uid:gid" as in an image's config.
	Name   string
	UID    *int64
	GID    *int64
	Groups []int64
	// Strict ignores the groups that the image's /etc/group gives the user.
	Strict bool
}

// Identity is a User that has been looked up.
type Identity struct {
	UID, GID uint32
	Groups   []uint32
	Home     string
}

// Rootfs is an overlay: Lowers are directory names below LowerBase, uppermost first (relative names keep the mount
// options below one page). Upper, Work and Target are absolute.
type Rootfs struct {
	LowerBase string
	Lowers    []string
	Upper     string
	Work      string
	Target    string
	Readonly  bool
}

// Mount is one mount inside the container. Type "bind" takes Source from the host.
type Mount struct {
	Type              string
	Source            string
	Target            string
	Flags             uintptr
	Data              string
	Readonly          bool
	RecursiveReadonly bool
	// Propagation is PropagationPrivate, PropagationSlave or PropagationShared.
	Propagation string
	// Lowers of a mount of type "image" are its layers, the highest first, as those of Rootfs. Source is an empty
	// directory of the host for it, and SubPath what of the image is mounted; "" is all of it.
	Lowers  []string
	SubPath string
}

// The three propagations CRI knows.
const (
	PropagationPrivate = ""
	PropagationSlave   = "slave"
	PropagationShared  = "shared"
)

// Device is a host device node made visible in the container.
type Device struct {
	HostPath      string
	ContainerPath string
}

// Cgroup says where the process belongs. Dirs are the group's directories of v1 on the host, Unified that of v2; a hybrid machine has
// both. Mounts maps a controller to its directory for the container's /sys/fs/cgroup (v1); V2 asks for a cgroup namespace instead.
type Cgroup struct {
	Dirs    []string
	Unified string
	Mounts  map[string]string
	V2      bool
}

// ExecSpec describes a command inside the container whose main process is PID (as seen on the host).
type ExecSpec struct {
	PID    int
	Cgroup Cgroup
	// Users, if not nil, are the container's own.
	Users   *Users `json:",omitempty"`
	Process Process
}

// Report is what the booting process says on its socket: its host pid first, then the user of its command, then
// at most one error. A terminal's master side travels as a file descriptor beside the report with Terminal set.
type Report struct {
	PID int `json:",omitempty"`
	// Forked is the main process's host pid, if it is not the one that boots; the reporter then waits for a byte.
	Forked   int       `json:",omitempty"`
	Identity *Identity `json:",omitempty"`
	Terminal bool      `json:",omitempty"`
	Error    string    `json:",omitempty"`
	// Code is the exit code that a shell would give the failure: 127 not found, 126 not executable, else 128.
	Code int `json:",omitempty"`
	// Exited carries the command's exit code (Exec only); Done says that it is valid.
	Exited int  `json:",omitempty"`
	Done   bool `json:",omitempty"`
}

// File descriptors which the parent hands over, after stdin, stdout and stderr.
const (
	SpecFD   = 3
	ReportFD = 4
)
