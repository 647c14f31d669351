package wireguard

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"

	"github.com/setpoint-io/setpoint/agent/base/private"
)

const (
	// processName is argv[0] of the process that is a device.
	processName = "setpoint-wireguard"
	// processUser is whom it runs as: nobody whom Debian or systemd know. With the files it gets it needs no privileges.
	processUser = 65533
	// startTimeMax is generous: it starts in some ten milliseconds.
	startTimeMax = 30 * time.Second
	// answerTimeMax bounds an operation.
	answerTimeMax = 5 * time.Second
	// logTailBytes of its last words are in an error.
	logTailBytes = 1 << 10
)

func socketPath(dir string) string { return filepath.Join(dir, "control.sock") }

// startProcess makes the device's file and the socket, and starts the process that serves both.
func startProcess(name, dir string) error {
	if err := private.Folder(dir); err != nil {
		return err
	}
	device, err := openTUN(name)
	if err != nil {
		return fmt.Errorf("%s: %w", tunFile, err)
	}
	defer device.Close()
	control, err := listen(socketPath(dir))
	if err != nil {
		return err
	}
	defer control.Close()
	log, err := os.OpenFile(filepath.Join(dir, "log"), os.O_CREATE|os.O_TRUNC|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	return launch(device, control, log)
}

// launch returns when the process serves.
func launch(device, control, log *os.File) error {
	ready, childReady, err := os.Pipe()
	if err != nil {
		return err
	}
	defer ready.Close()
	command := &exec.Cmd{
		Path: "/proc/self/exe", Args: []string{processName}, Dir: "/", Env: []string{},
		Stdout: log, Stderr: log, ExtraFiles: []*os.File{childReady, device, control},
		SysProcAttr: &syscall.SysProcAttr{Setsid: true, Credential: &syscall.Credential{Uid: processUser, Gid: processUser}},
	}
	err = command.Start()
	childReady.Close()
	if errors.Is(err, os.ErrPermission) {
		return fmt.Errorf("the WireGuard process runs without privileges, and this program may not be executed by everybody: chmod a+rx it: %w", err)
	}
	if err != nil {
		return err
	}
	go func() { _ = command.Wait() }() // it outlives us, or ends with its device
	if err := ready.SetReadDeadline(time.Now().Add(startTimeMax)); err != nil {
		return err
	}
	if _, err := io.ReadFull(ready, make([]byte, 1)); err != nil {
		_ = command.Process.Kill() // it may have ended
		return fmt.Errorf("WireGuard process did not start: %w%s", err, tail(log))
	}
	return nil
}

func tail(log *os.File) string {
	text := make([]byte, logTailBytes)
	info, err := log.Stat()
	if err != nil {
		return ""
	}
	n, _ := log.ReadAt(text, max(0, info.Size()-logTailBytes))
	return ": " + strings.TrimSpace(string(text[:n]))
}

// openTUN makes the device, which is there as long as its file is open somewhere.
func openTUN(name string) (*os.File, error) {
	fd, err := unix.Open(tunFile, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), tunFile)
	request, err := unix.NewIfreq(name)
	if err == nil {
		// With IFF_VNET_HDR the kernel hands over many segments at once.
		request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI | unix.IFF_VNET_HDR)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, request)
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

// listen makes the socket, which only root reaches: it is in a private folder.
func listen(path string) (*os.File, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	defer listener.Close()
	listener.SetUnlinkOnClose(false)
	return listener.File()
}

// process is a device's, by its socket.
type process string

func (p process) read() (*wgtypes.Device, error) { return p.say(get) }

func (p process) write(c wgtypes.Config) error {
	_, err := p.say(setText(c))
	return err
}

func (p process) say(text string) (*wgtypes.Device, error) {
	conn, err := net.DialTimeout("unix", string(p), answerTimeMax)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(answerTimeMax)); err != nil {
		return nil, err
	}
	if _, err := io.WriteString(conn, text); err != nil {
		return nil, err
	}
	return answer(conn)
}
