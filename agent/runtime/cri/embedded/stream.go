package embedded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/vishvananda/netns"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-streaming/pkg/streaming"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"

	"github.com/setpoint-io/setpoint/agent/runtime/cri"
	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/shim"
)

// Limits of streams.
const (
	forwardDialTimeMax  = 10 * time.Second
	streamHeaderTimeMax = 10 * time.Second
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
			return followSizes(resize, func(size remotecommand.TerminalSize) {
				_ = shim.Resize(terminal, size.Width, size.Height) // the command may have ended
			})
		}
	}
	return r.exec(ctx, c, req)
}

// followSizes applies sizes until the channel closes or stop is called.
func followSizes(sizes <-chan remotecommand.TerminalSize, apply func(remotecommand.TerminalSize)) (stop func()) {
	stopped := make(chan struct{})
	go func() {
		for {
			select {
			case size, open := <-sizes:
				if !open {
					return
				}
				apply(size)
			case <-stopped:
				return
			}
		}
	}()
	return sync.OnceFunc(func() { close(stopped) })
}

// AttachStream implements cri.Streamer.
func (r *Runtime) AttachStream(ctx context.Context, id string, stdin io.Reader, stdout, stderr io.WriteCloser,
	tty bool, resize <-chan remotecommand.TerminalSize) error {
	c, err := r.runningContainer(id)
	if err != nil {
		return err
	}
	if tty {
		stop := followSizes(resize, func(size remotecommand.TerminalSize) {
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
	return coded(splice(conn, stream))
}

// splice copies both ways; the pod's end of stream ends it, the client's only closes its half.
func splice(conn net.Conn, stream io.ReadWriteCloser) error {
	go func() {
		_, _ = io.Copy(conn, stream)
		if half, ok := conn.(*net.TCPConn); ok {
			_ = half.CloseWrite() // the pod may have closed already
		}
	}()
	_, err := io.Copy(stream, conn)
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return errors.Join(err, stream.Close())
}

// dial opens a socket from inside the pod's network namespace; afterwards the socket works from anywhere.
func (s *sandbox) dial(ctx context.Context, port int32) (net.Conn, error) {
	if hostNetwork(s.config) {
		return dialLocal(ctx, port)
	}
	s.mu.Lock()
	pid := s.record.HolderPID
	s.mu.Unlock()
	type result struct {
		conn net.Conn
		err  error
	}
	results := make(chan result, 1)
	go func() {
		// The thread is spoilt and never unlocked: it dies with this goroutine.
		runtime.LockOSThread()
		namespace, err := netns.GetFromPid(pid)
		if err == nil {
			defer namespace.Close()
			err = netns.Set(namespace)
		}
		if err != nil {
			results <- result{err: err}
			return
		}
		conn, err := dialLocal(ctx, port)
		results <- result{conn, err}
	}()
	got := <-results
	return got.conn, got.err
}

// dialLocal uses one address only: a second one would be dialled from another goroutine, outside the namespace.
func dialLocal(ctx context.Context, port int32) (net.Conn, error) {
	dialer := net.Dialer{Timeout: forwardDialTimeMax, FallbackDelay: -1}
	return dialer.DialContext(ctx, "tcp4", fmt.Sprintf("127.0.0.1:%d", port))
}

// Exec returns a loopback URL that serves the command by SPDY or WebSocket, for callers that do not use ExecStream.
func (r *Runtime) Exec(_ context.Context, req *runtimeapi.ExecRequest) (*runtimeapi.ExecResponse, error) {
	if _, err := r.runningContainer(req.GetContainerId()); err != nil {
		return nil, err
	}
	server, err := r.streaming()
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
	server, err := r.streaming()
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
	server, err := r.streaming()
	if err != nil {
		return nil, coded(err)
	}
	return server.GetPortForward(req)
}

// streaming starts the loopback server when the first caller wants it; most agents never do.
func (r *Runtime) streaming() (streaming.Server, error) {
	r.streamOnce.Do(func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.closed {
			r.streamErr = ErrClosed
			return
		}
		r.streamServer, r.streamErr = r.startStreaming()
	})
	return r.streamServer, r.streamErr
}

func (r *Runtime) startStreaming() (streaming.Server, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	config := streaming.DefaultConfig
	config.Addr = listener.Addr().String()
	config.BaseURL = &url.URL{Scheme: "http", Host: config.Addr}
	handler, err := streaming.NewServer(config, cri.StreamingRuntime(r))
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	// Served by us, not by its Start, which would rewrite the base URL while requests read it.
	r.streamHTTP = &http.Server{Handler: handler, ReadHeaderTimeout: streamHeaderTimeMax}
	r.background.Go(func() {
		if err := r.streamHTTP.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			r.config.Logger.Error("streaming server", "err", err)
		}
	})
	return handler, nil
}
