package process

import (
	"errors"
	"fmt"
	"net"
	"syscall"
)

// The flags that choose a port.
const (
	PortFlag      = "--port"
	AdvertiseFlag = "--advertise-address"
)

var errPortInUse = errors.New("the port is taken: stop what uses it, or choose another with")

// CheckPort says early whether the port of "host:port" is taken: Listen opens it when there
// is somebody to answer.
func CheckPort(address, flag string) error {
	listener, err := Listen(address, flag)
	if err != nil {
		return err
	}
	return listener.Close()
}

// Listen opens a TCP listener and says what to do when the port is taken: flag is the one by which a user chooses another.
func Listen(address, flag string) (net.Listener, error) {
	listener, err := net.Listen("tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%s: %w %s", address, errPortInUse, flag)
	}
	return listener, err
}
