package cri

import (
	"context"
	"io"

	internalapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-streaming/pkg/streaming"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"

	"github.com/setpoint-io/setpoint/internal/podfields"
)

// Runtime runs pods: sandboxes, containers and images. Close(ctx) releases the connection to the runtime (or the
// in-process watchers of the embedded one); it never stops a container.
type Runtime interface {
	internalapi.RuntimeService
	internalapi.ImageManagerService
}

// Conditions that the embedded runtime's Status has beside CRI's own. One that is false says why this machine cannot give pods that wall.
const (
	AppArmorReady       = "AppArmorReady"
	SELinuxReady        = "SELinuxReady"
	UserNamespacesReady = "UserNamespacesReady"
)

// Condition of a runtime's Status: true without an error.
func Condition(kind, reason string, err error) *runtimeapi.RuntimeCondition {
	if err == nil {
		return &runtimeapi.RuntimeCondition{Type: kind, Status: true}
	}
	return &runtimeapi.RuntimeCondition{Type: kind, Reason: reason, Message: err.Error()}
}

// Streamer is implemented by runtimes that carry interactive streams in-process. Each call blocks until the stream
// has ended. A command that ran and failed is reported as a k8s.io/utils/exec.CodeExitError.
type Streamer interface {
	// ExecStream runs cmd in a running container. stdin, stdout and stderr may be nil; with tty stderr is nil and
	// resize delivers terminal sizes until it is closed.
	ExecStream(ctx context.Context, containerID string, cmd []string, stdin io.Reader, stdout, stderr io.WriteCloser,
		tty bool, resize <-chan remotecommand.TerminalSize) error
	// AttachStream connects to the main process of a running container until it exits or ctx ends.
	AttachStream(ctx context.Context, containerID string, stdin io.Reader, stdout, stderr io.WriteCloser,
		tty bool, resize <-chan remotecommand.TerminalSize) error
	// PortForwardStream connects stream with 127.0.0.1:port inside the sandbox's network namespace.
	PortForwardStream(ctx context.Context, podSandboxID string, port int32, stream io.ReadWriteCloser) error
}

// Limited is implemented by runtimes that know which fields of pods they cannot honour. Of others it is assumed that they
// do what they are asked, or say that they cannot.
type Limited interface {
	Can() podfields.Node
}

// PullTeller is implemented by runtimes that know how far pulls are.
type PullTeller interface {
	// PullProgress is how many bytes of an image have come, of how many; 0: the registry has not said yet.
	PullProgress(image string) (bytes, total int64, underway bool)
}

// StreamingRuntime presents s in the form which the published CRI streaming server expects.
func StreamingRuntime(s Streamer) streaming.Runtime { return streamingRuntime{s} }

type streamingRuntime struct{ streamer Streamer }

func (r streamingRuntime) Exec(ctx context.Context, containerID string, cmd []string, in io.Reader, out, err io.WriteCloser,
	tty bool, resize <-chan remotecommand.TerminalSize) error {
	return r.streamer.ExecStream(ctx, containerID, cmd, in, out, err, tty, resize)
}

func (r streamingRuntime) Attach(ctx context.Context, containerID string, in io.Reader, out, err io.WriteCloser,
	tty bool, resize <-chan remotecommand.TerminalSize) error {
	return r.streamer.AttachStream(ctx, containerID, in, out, err, tty, resize)
}

func (r streamingRuntime) PortForward(ctx context.Context, podSandboxID string, port int32, stream io.ReadWriteCloser) error {
	return r.streamer.PortForwardStream(ctx, podSandboxID, port, stream)
}
