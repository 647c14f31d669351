package embedded

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/boot"
	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/cgroup"
	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/reap"
	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/shim"
)

// shimStartTimeMax is generous: a shim is ready in milliseconds unless the machine is badly overloaded.
const shimStartTimeMax = 30 * time.Second

// startedShim is a shim that may not listen yet.
type startedShim struct {
	pid   int
	ready *os.File
	kill  func()
}

// startShim forks the pod's first process; its namespaces exist when this returns.
func (r *Runtime) startShim(s *sandbox) (*startedShim, error) {
	log, err := os.OpenFile(filepath.Join(s.dir, shim.LogName), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	ready, childReady, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer childReady.Close()
	command := &exec.Cmd{
		Path: r.executable.Path, Args: []string{shim.Name, s.dir}, Dir: "/",
		// Two processors' worth of threads are plenty for copying logs.
		Env:        []string{"GOMAXPROCS=2"},
		Stdout:     log,
		Stderr:     log,
		ExtraFiles: []*os.File{childReady},
		SysProcAttr: &syscall.SysProcAttr{
			Setsid:     true,
			Cloneflags: shimNamespaces(s.config),
		},
	}
	if err := s.startInGroup(command); err != nil {
		ready.Close()
		return nil, fmt.Errorf("start shim: %w", err)
	}
	go func() { // nobody waits for this: a shim is meant to outlive us
		_ = reap.Wait(command) // its exit code says nothing its socket did not say
		s.closeGone()
	}()
	kill := func() { _ = command.Process.Kill() } // it may have ended by itself
	return &startedShim{pid: command.Process.Pid, ready: ready, kill: kill}, nil
}

// startInGroup starts the shim in its group of a hybrid machine's v2, where there are no limits. Into its groups of v1 it goes by
// itself, and into that of v2 by finishSandbox: it starts sooner than under its pod's limits.
func (s *sandbox) startInGroup(command *exec.Cmd) error {
	if cgroup.V2() {
		return command.Start()
	}
	group, err := cgroupSpec(s.leaf).ForkInto(command.SysProcAttr)
	if err != nil {
		return err
	}
	defer group.Close()
	return command.Start()
}

// shimNamespaces are the pod's, which are made with its shim; those of a pod with users of its own belong to these, and are made
// by the shim.
func shimNamespaces(config *runtimeapi.PodSandboxConfig) uintptr {
	var flags uintptr
	if usersOf(config) != nil {
		return flags
	}
	options := namespaces(config)
	if options.GetNetwork() != runtimeapi.NamespaceMode_NODE {
		flags |= unix.CLONE_NEWNET | unix.CLONE_NEWUTS
	}
	if options.GetIpc() != runtimeapi.NamespaceMode_NODE {
		flags |= unix.CLONE_NEWIPC
	}
	return flags
}

// sharesPID tells whether the pod has one PID namespace for all its containers; a pause process is then its process 1.
func sharesPID(config *runtimeapi.PodSandboxConfig) bool {
	return namespaces(config).GetPid() == runtimeapi.NamespaceMode_POD
}

// ownPID tells whether a container gets a PID namespace of its own: always, unless it asks for one that it may share.
func ownPID(pod *runtimeapi.PodSandboxConfig, config *runtimeapi.ContainerConfig) bool {
	options := config.GetLinux().GetSecurityContext().GetNamespaceOptions()
	switch options.GetPid() {
	case runtimeapi.NamespaceMode_NODE:
		return false
	case runtimeapi.NamespaceMode_POD:
		return !sharesPID(pod)
	case runtimeapi.NamespaceMode_TARGET:
		return false
	default:
		return true
	}
}

// podPID tells whether a container joins the PID namespace that its pod has.
func podPID(pod *runtimeapi.PodSandboxConfig, config *runtimeapi.ContainerConfig) bool {
	options := config.GetLinux().GetSecurityContext().GetNamespaceOptions()
	return options.GetPid() == runtimeapi.NamespaceMode_POD && sharesPID(pod)
}

// await returns when the shim says the next thing of itself (shim.ReadyFD): the number of its pause process, or 0.
func (s *sandbox) await(ctx context.Context, started *startedShim) (pause int, err error) {
	if pause, err = started.wait(ctx); err != nil {
		return 0, fmt.Errorf("%w%s", err, s.shimLog())
	}
	return pause, nil
}

func (s *startedShim) wait(ctx context.Context) (pause int, _ error) {
	deadline := time.Now().Add(shimStartTimeMax)
	if limit, ok := ctx.Deadline(); ok && limit.Before(deadline) {
		deadline = limit
	}
	if err := s.ready.SetReadDeadline(deadline); err != nil {
		return 0, err
	}
	var number int32
	err := binary.Read(s.ready, binary.NativeEndian, &number)
	if errors.Is(err, io.EOF) {
		err = errShimEnded
	}
	if err != nil {
		return 0, fmt.Errorf("shim did not start: %w", err)
	}
	return int(number), nil
}

func (s *sandbox) writeShimConfig() error {
	sysctls, err := sysctlFiles(s.config)
	if err != nil {
		return err
	}
	config := shim.Config{PodSettings: boot.PodSettings{Sysctls: sysctls}, Users: usersOf(s.config), Cgroup: cgroupSpec(s.leaf)}
	if !hostNetwork(s.config) {
		config.Hostname = s.config.GetHostname()
	}
	if sharesPID(s.config) || config.Users != nil {
		masked, _ := hiddenPaths(nil)
		config.Pause = &boot.PauseSpec{MaskedPaths: masked}
	}
	data, err := json.Marshal(config)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(s.dir, shim.ConfigName), data, 0o600)
}

// shimLog is the last thing a failed shim said.
func (s *sandbox) shimLog() string {
	data, err := os.ReadFile(filepath.Join(s.dir, shim.LogName))
	if err != nil || len(data) == 0 {
		return ""
	}
	return ": " + strings.TrimSpace(string(data[max(0, len(data)-1024):]))
}
