package boot

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"

	"golang.org/x/sys/unix"
)

const reportBytesMax = 64 << 10

// Shell conventions for a command that could not be started.
const (
	codeNotExecutable = 126
	codeNotFound      = 127
	codeStartFailed   = 128
)

func readSpec(spec any) error { return decodeSpec(SpecFD, spec) }

func decodeSpec(fd int, spec any) error {
	file := os.NewFile(uintptr(fd), "spec")
	defer file.Close()
	if err := json.NewDecoder(file).Decode(spec); err != nil {
		return fmt.Errorf("read spec: %w", err)
	}
	return nil
}

func send(report Report, files ...int) error {
	data, err := json.Marshal(report)
	if err != nil {
		return err
	}
	var rights []byte
	if len(files) > 0 {
		rights = unix.UnixRights(files...)
	}
	return unix.Sendmsg(ReportFD, data, rights, nil, unix.MSG_NOSIGNAL)
}

// fail reports err to whoever started this process and ends it.
func fail(err error) {
	code := codeStartFailed
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, os.ErrNotExist):
		code = codeNotFound
	case errors.Is(err, os.ErrPermission), errors.Is(err, unix.ENOEXEC):
		code = codeNotExecutable
	}
	// The parent may be gone; there is nobody else to tell.
	_ = send(Report{Error: err.Error(), Code: code})
	os.Exit(code)
}

// reportBuffers are of reportBytesMax: most reports are small, and each probe that runs a command reads some.
var reportBuffers = sync.Pool{New: func() any { return new([reportBytesMax]byte) }}

// ReadReport reads the next report from our end of [NewReportSocket]; io.EOF after execve or the end of the process. A received
// terminal is returned as file. No thread waits meanwhile.
func ReadReport(socket *os.File) (report Report, terminal *os.File, err error) {
	buffer := reportBuffers.Get().(*[reportBytesMax]byte)
	defer reportBuffers.Put(buffer)
	rights := make([]byte, unix.CmsgSpace(4))
	n, oobn, err := receive(socket, buffer[:], rights)
	if err != nil {
		return Report{}, nil, fmt.Errorf("read report: %w", err)
	}
	if n == 0 {
		return Report{}, nil, io.EOF
	}
	if err := json.Unmarshal(buffer[:n], &report); err != nil {
		return Report{}, nil, fmt.Errorf("read report: %w", err)
	}
	if report.Terminal {
		terminal, err = receivedFile(rights[:oobn])
	}
	return report, terminal, err
}

func receive(socket *os.File, data, rights []byte) (n, oobn int, err error) {
	conn, err := socket.SyscallConn()
	if err != nil {
		return 0, 0, err
	}
	var received error
	err = conn.Read(func(fd uintptr) bool {
		for {
			n, oobn, _, _, received = unix.Recvmsg(int(fd), data, rights, unix.MSG_CMSG_CLOEXEC)
			if !errors.Is(received, unix.EINTR) {
				return !errors.Is(received, unix.EAGAIN)
			}
		}
	})
	return n, oobn, cmp.Or(err, received)
}

// HangUp ends the reports while they may be being read: our end reads io.EOF, and the child's process sees it. A second time, or after
// the socket was closed, it does nothing.
func HangUp(socket *os.File) {
	conn, err := socket.SyscallConn()
	if err != nil {
		return // it is closed
	}
	_ = conn.Control(func(fd uintptr) { _ = unix.Shutdown(int(fd), unix.SHUT_RDWR) }) // fails only when the child is gone
}

func receivedFile(rights []byte) (*os.File, error) {
	messages, err := unix.ParseSocketControlMessage(rights)
	if err != nil || len(messages) == 0 {
		return nil, fmt.Errorf("terminal report without a descriptor: %v", err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) == 0 {
		return nil, fmt.Errorf("terminal report without a descriptor: %v", err)
	}
	// Non-blocking lets the runtime's poller own it, so that closing it ends a pending read.
	if err := unix.SetNonblock(fds[0], true); err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fds[0]), "terminal"), nil
}

// NewReportSocket makes the two ends: ours to read with [ReadReport], the child's to pass as ReportFD.
func NewReportSocket() (ours, child *os.File, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		err = unix.SetNonblock(pair[0], true) // the runtime's poller waits for it
	}
	if err != nil {
		return nil, nil, fmt.Errorf("report socket: %w", err)
	}
	return os.NewFile(uintptr(pair[0]), "reports"), os.NewFile(uintptr(pair[1]), "report"), nil
}
