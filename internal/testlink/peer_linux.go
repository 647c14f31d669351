package testlink

import (
	"net"
	"syscall"
)

// peer is the process that listens at the other end, 0 if that is not known.
func peer(conn net.Conn) (pid int) {
	raw, err := conn.(*net.UnixConn).SyscallConn()
	if err != nil {
		return 0
	}
	_ = raw.Control(func(fd uintptr) {
		if who, err := syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED); err == nil {
			pid = int(who.Pid)
		}
	})
	return pid
}
