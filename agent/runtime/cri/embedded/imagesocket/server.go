package imagesocket

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/setpoint-io/setpoint/agent/base/private"
	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/images"
)

const (
	socketName = "images.sock"
	// headerTimeMax bounds how long a client may take to say what it wants.
	headerTimeMax = 10 * time.Second
	// drainTimeMax is what calls under way get when the server ends.
	drainTimeMax = 5 * time.Second
)

// Config of a server; all fields are required.
type Config struct {
	// Dir is the runtime's folder, whose lock the caller has.
	Dir    string
	Store  *images.Store
	Use    func() (images.Use, error)
	Logger *slog.Logger
}

// Listen makes the socket.
func Listen(dir string) (net.Listener, error) {
	if err := private.Folder(dir); err != nil {
		return nil, err
	}
	if err := os.Remove(filepath.Join(dir, socketName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var listener *net.UnixListener
	err := short(dir, func(path string) (err error) {
		listener, err = net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("socket for images: %w", err)
	}
	listener.SetUnlinkOnClose(false) // Run removes it: the short path is gone by then
	return listener, nil
}

// short is a path of the socket that fits into an address: folders may have longer names than the 107 bytes of that.
func short(dir string, use func(path string) error) error {
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &fs.PathError{Op: "open", Path: dir, Err: err}
	}
	defer unix.Close(fd)
	return use(fmt.Sprintf("/proc/self/fd/%d/%s", fd, socketName))
}

// Run serves the listener until ctx ends, and removes the socket.
func Run(ctx context.Context, listener net.Listener, config Config) error {
	server := &http.Server{
		Handler: config.handler(), ReadHeaderTimeout: headerTimeMax,
		ErrorLog:    slog.NewLogLogger(config.Logger.Handler(), slog.LevelDebug),
		BaseContext: func(net.Listener) context.Context { return ctx }, // pulls end with it
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	var err error
	select {
	case err = <-served:
	case <-ctx.Done():
		drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeMax)
		defer cancel()
		if server.Shutdown(drain) != nil {
			err = server.Close()
		}
		<-served
	}
	if removed := os.Remove(filepath.Join(config.Dir, socketName)); removed != nil && !errors.Is(removed, fs.ErrNotExist) {
		err = errors.Join(err, removed)
	}
	return err
}
