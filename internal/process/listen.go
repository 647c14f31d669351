package process

import (
	"errors"
	"fmt"
	"net"
	"syscall"
)

var errPortInUse = errors.New("the port is taken: stop what uses it or choose another with --port or --advertise-address")

// CheckPort says early whether the port of "host:port" is taken: Listen opens it when there
// is somebody to answer.
func CheckPort(address string) error {
	listener, err := Listen(address)
	if err != nil {
		return err
	}
	return listener.Close()
}

// Listen opens a TCP listener and says what to do when the port is taken.
func Listen(address string) (net.Listener, error) {
	listener, err := net.Listen("tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%s: %w", address, errPortInUse)
	}
	return listener, err
}
