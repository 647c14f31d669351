package embedded

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"

	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/shim"
	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/streams"
)

// ExecStream implements cri.Streamer.
func (r *Runtime) ExecStream(ctx context.Context, id string, command []string, stdin io.Reader, stdout, stderr io.WriteCloser,
	tty bool, resize <-chan remotecommand.TerminalSize) error {
	c, err := r.runningContainer(id)
	if err != nil {
		return err
	}
	req := execRequest{command: command, stdin: stdin, tty: tty}
	// A nil WriteCloser in an io.Writer would not be nil.
	if stdout != nil {
		req.stdout = stdout
	}
	if stderr != nil {
		req.stderr = stderr
	}
	if tty {
		req.resize = func(terminal *os.File) func() {
			return streams.FollowSizes(resize, func(size remotecommand.TerminalSize) {
				_ = shim.Resize(terminal, size.Width, size.Height) // the command may have ended
			})
		}
	}
	return r.exec(ctx, c, req)
}

// AttachStream implements cri.Streamer.
func (r *Runtime) AttachStream(ctx context.Context, id string, stdin io.Reader, stdout, stderr io.WriteCloser,
	tty bool, resize <-chan remotecommand.TerminalSize) error {
	c, err := r.runningContainer(id)
	if err != nil {
		return err
	}
	if tty {
		stop := streams.FollowSizes(resize, func(size remotecommand.TerminalSize) {
			_ = c.sandbox.shim.Resize(ctx, id, size.Width, size.Height) // the container may have ended
		})
		defer stop()
	}
	if !c.config.GetStdin() {
		stdin = nil
	}
	var out, errOut io.Writer
	if stdout != nil {
		out = stdout
	}
	if stderr != nil {
		errOut = stderr
	}
	return coded(c.sandbox.shim.Attach(ctx, id, stdin, out, errOut))
}

// PortForwardStream implements cri.Streamer.
func (r *Runtime) PortForwardStream(ctx context.Context, sandboxID string, port int32, stream io.ReadWriteCloser) error {
	s, err := r.sandbox(sandboxID)
	if err != nil {
		return err
	}
	if !s.ready() {
		return status.Errorf(codes.FailedPrecondition, "sandbox %q is not ready", sandboxID)
	}
	conn, err := s.dial(ctx, port)
	if err != nil {
		return coded(fmt.Errorf("forward port %d: %w", port, err))
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close(); stream.Close() })()
	return coded(streams.Splice(conn, stream))
}

// dial opens a socket from inside the pod's network namespace.
func (s *sandbox) dial(ctx context.Context, port int32) (net.Conn, error) {
	if hostNetwork(s.config) {
		return streams.Dial(ctx, port)
	}
	s.mu.Lock()
	pid := s.record.HolderPID
	s.mu.Unlock()
	return streams.DialIn(ctx, pid, port)
}

// Exec returns a loopback URL that serves the command by SPDY or WebSocket, for callers that do not use ExecStream.
func (r *Runtime) Exec(_ context.Context, req *runtimeapi.ExecRequest) (*runtimeapi.ExecResponse, error) {
	if _, err := r.runningContainer(req.GetContainerId()); err != nil {
		return nil, err
	}
	server, err := r.streams.URLs()
	if err != nil {
		return nil, coded(err)
	}
	return server.GetExec(req)
}

// Attach returns a loopback URL, as Exec does.
func (r *Runtime) Attach(_ context.Context, req *runtimeapi.AttachRequest) (*runtimeapi.AttachResponse, error) {
	if _, err := r.runningContainer(req.GetContainerId()); err != nil {
		return nil, err
	}
	server, err := r.streams.URLs()
	if err != nil {
		return nil, coded(err)
	}
	return server.GetAttach(req)
}

// PortForward returns a loopback URL, as Exec does.
func (r *Runtime) PortForward(_ context.Context, req *runtimeapi.PortForwardRequest) (*runtimeapi.PortForwardResponse, error) {
	if _, err := r.sandbox(req.GetPodSandboxId()); err != nil {
		return nil, err
	}
	server, err := r.streams.URLs()
	if err != nil {
		return nil, coded(err)
	}
	return server.GetPortForward(req)
}
