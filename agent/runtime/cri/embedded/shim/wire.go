package shim

import (
	"time"

	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/boot"
)

// SocketName, ConfigName, LogName and ExitName are files in a sandbox's or container's directory.
const (
	SocketName = "shim.sock"
	ConfigName = "shim.json"
	LogName    = "shim.log"
	ExitName   = "exit.json"
)

// Config is what a new shim reads from ConfigName.
type Config struct {
	boot.PodSettings
	// Pause asks for a process that holds namespaces of the pod: a PID namespace that containers may share and, with Users, a
	// user namespace and the network, IPC and UTS namespaces that belong to it.
	Pause *boot.PauseSpec `json:",omitempty"`
	// Users are the pod's own, Holder yet unknown.
	Users *boot.Users `json:",omitempty"`
	// Cgroup is the shim's own, and that of the pause process.
	Cgroup boot.Cgroup
}

// StartRequest starts one container.
type StartRequest struct {
	Spec boot.Spec
	// Dir receives the exit file. LogPath is the CRI log file; empty writes none.
	Dir     string
	LogPath string
	// Stdin keeps the container's standard input open for attach clients; StdinOnce closes it after the first one.
	Stdin     bool
	StdinOnce bool
	// NewPID gives the container a PID namespace of its own, PodPID that of the pod's pause process.
	NewPID bool
	PodPID bool
	// TargetPID, if not 0, is the process (the host's number) whose PID namespace the container joins.
	TargetPID int
}

// Exit is what became of a container's main process.
type Exit struct {
	Code int
	// Signal that killed it, 0 if none.
	Signal     int
	FinishedAt time.Time
	// Reason and Message say why there was never a main process.
	Reason  string `json:",omitempty"`
	Message string `json:",omitempty"`
}

// State is one container as the shim sees it. PID is the host's number, Identity as whom its main process began.
type State struct {
	ID        string
	PID       int
	Identity  *boot.Identity `json:",omitempty"`
	StartedAt time.Time
	Exit      *Exit `json:",omitempty"`
}

// request is the first line on each connection.
type request struct {
	Op     string
	ID     string        `json:",omitempty"`
	Start  *StartRequest `json:",omitempty"`
	Signal int           `json:",omitempty"`
	Width  uint16        `json:",omitempty"`
	Height uint16        `json:",omitempty"`
	Log    string        `json:",omitempty"`
}

// The operations.
const (
	opStart    = "start"
	opSignal   = "signal"
	opWatch    = "watch"
	opReopen   = "reopen"
	opResize   = "resize"
	opAttach   = "attach"
	opShutdown = "shutdown"
)

// response is the one line answer; opWatch goes on with one State per line, opAttach with frames.
type response struct {
	Error string `json:",omitempty"`
	Code  int    `json:",omitempty"`
	State *State `json:",omitempty"`
}

// Output streams, as in an attach frame's first byte.
const (
	streamStdout = 1
	streamStderr = 2
)
