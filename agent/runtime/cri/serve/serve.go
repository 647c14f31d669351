package serve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/setpoint-io/setpoint/agent/base/private"
	"github.com/setpoint-io/setpoint/agent/runtime/cri"
)

const (
	// scheme is how kubelets and crictl write the address of a socket.
	scheme = "unix://"
	// socketPathBytesMax is what the kernel takes: sockaddr_un has 108 bytes with the zero at the end.
	socketPathBytesMax = 107
	// messageBytesMax bounds one call, as kubelets bound what they receive.
	messageBytesMax = 16 << 20
	// drainTimeMax is what calls under way get when the server ends; then they are cancelled.
	drainTimeMax = 5 * time.Second
	// probeTimeMax bounds the question whether somebody serves the socket.
	probeTimeMax = 2 * time.Second
)

var (
	// ErrServed says that another process serves the socket.
	ErrServed = errors.New("another process serves this socket")
	// ErrEndpoint says that an endpoint is not "unix://" and an absolute path.
	ErrEndpoint = errors.New("not unix:///path/of/a/socket")
	// ErrNotSocket says that something that is no socket lies at the path.
	ErrNotSocket = errors.New("there is something else than a socket, which stays")
)

// Config says what is served. Runtime and Logger are required.
type Config struct {
	Runtime cri.Runtime
	Logger  *slog.Logger
	// Ready, if given, is called once the socket takes calls.
	Ready func()
}

// Socket is the path of an endpoint.
func Socket(endpoint string) (string, error) {
	path, ok := strings.CutPrefix(endpoint, scheme)
	switch {
	case !ok || !filepath.IsAbs(path) || filepath.Clean(path) != path || path == "/":
		return "", fmt.Errorf("%q: %w", endpoint, ErrEndpoint)
	case len(path) > socketPathBytesMax:
		return "", fmt.Errorf("%q: the path has more than %d bytes, the most that a socket's may have", endpoint, socketPathBytesMax)
	}
	return path, nil
}

// Listen makes the socket and its folder.
func Listen(ctx context.Context, endpoint string) (net.Listener, error) {
	path, err := Socket(endpoint)
	if err != nil {
		return nil, err
	}
	if err := ownFolder(filepath.Dir(path)); err != nil {
		return nil, fmt.Errorf("folder of the socket: %w", err)
	}
	if err := removeStale(ctx, path); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil { // until now the folder kept others out
		return nil, errors.Join(err, listener.Close())
	}
	return listener, nil
}

// ownFolder makes the folder, or refuses one of somebody else: what is shared, /run or /tmp, must not lose its mode.
func ownFolder(dir string) error {
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return private.Folder(dir)
	}
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is no folder", dir)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return fmt.Errorf("%s is open to others (mode %04o): name a folder of its own, or close this one with chmod 700", dir, mode)
	}
	return nil
}

// removeStale removes a socket that nobody serves, such as that of a process that was killed.
func removeStale(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode().Type() != fs.ModeSocket {
		return ErrNotSocket
	}
	dialer := net.Dialer{Timeout: probeTimeMax}
	conn, err := dialer.DialContext(ctx, "unix", path)
	if err == nil {
		return errors.Join(ErrServed, conn.Close())
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return errors.Join(ErrServed, err) // it may be that somebody is too busy to answer
	}
	return os.Remove(path)
}

// Run serves the listener until ctx ends, and closes it. The runtime is the caller's to close.
func Run(ctx context.Context, listener net.Listener, config Config) error {
	server := grpc.NewServer(
		grpc.MaxRecvMsgSize(messageBytesMax), grpc.MaxSendMsgSize(messageBytesMax), grpc.UnaryInterceptor(config.log),
	)
	calls := &runtimeServer{runtime: config.Runtime, ending: ctx}
	runtimeapi.RegisterRuntimeServiceServer(server, calls)
	runtimeapi.RegisterImageServiceServer(server, imageServer{calls: calls})
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	if config.Ready != nil {
		config.Ready()
	}
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	cancel := time.AfterFunc(drainTimeMax, server.Stop)
	defer cancel.Stop()
	server.GracefulStop()
	if err := <-served; !errors.Is(err, grpc.ErrServerStopped) { // else the end came before the first connection could
		return err
	}
	return nil
}

// log tells at level debug what was asked, and of what failed why.
func (c Config) log(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	begin := time.Now()
	answer, err := handle(ctx, req)
	c.Logger.Debug("call", "method", filepath.Base(info.FullMethod), "took", time.Since(begin), "err", err)
	return answer, err
}
