package network

import (
	"errors"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"
)

const sctpPort = 3868 // Diameter's

// TestSCTP goes the ways that TCP goes, with real associations: between pods, to a Service, to a port of the machine.
func TestSCTP(t *testing.T) {
	needRoot(t)
	fd, err := sctpSocket()
	if errors.Is(err, unix.EPROTONOSUPPORT) {
		t.Skip("this kernel has no SCTP")
	}
	check(t, err)
	unix.Close(fd)
	n := newNetwork(t)
	one := startPod(t, n, "one")
	two := startPod(t, n, "two", HostPort{Protocol: unix.IPPROTO_SCTP, Port: 8083, PodPort: sctpPort})
	if got := two.say("serve SCTP"); got != "" {
		t.Fatal(got)
	}
	const address = "10.199.7.250:3868"
	translation := newTranslation(t)
	translate(t, translation, service(unix.IPPROTO_SCTP, address, []string{"10.199.7.3:3868"}))
	for what, answer := range map[string]struct{ got, want string }{
		"pod to pod":              {one.say("sctp 10.199.7.3:3868"), "10.199.7.2"},
		"machine to pod":          {askSCTP("10.199.7.3:3868"), gatewayOfTest},
		"pod to Service":          {one.say("sctp " + address), "10.199.7.2"},
		"pod to its own Service":  {two.say("sctp " + address), gatewayOfTest},
		"machine to Service":      {askSCTP(address), gatewayOfTest},
		"machine to its own port": {askSCTP("127.0.0.1:8083"), gatewayOfTest},
	} {
		if answer.got != answer.want {
			t.Errorf("%s: got %q, want %q", what, answer.got, answer.want)
		}
	}
}

// sctpSocket waits no longer than askTimeMax for anything.
func sctpSocket() (int, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, unix.IPPROTO_SCTP)
	if err != nil {
		return 0, err
	}
	wait := unix.NsecToTimeval(askTimeMax.Nanoseconds())
	return fd, errors.Join(unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &wait),
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wait))
}

// serveSCTP tells each client its address, until the process ends.
func serveSCTP() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, unix.IPPROTO_SCTP)
	if err != nil {
		return err
	}
	if err := errors.Join(unix.Bind(fd, &unix.SockaddrInet4{Port: sctpPort}), unix.Listen(fd, 8)); err != nil {
		return err
	}
	go func() {
		for {
			conn, peer, err := unix.Accept4(fd, unix.SOCK_CLOEXEC)
			if err != nil {
				return
			}
			if ip, ok := peer.(*unix.SockaddrInet4); ok {
				_, _ = unix.Write(conn, []byte(netip.AddrFrom4(ip.Addr).String()))
			}
			unix.Close(conn)
		}
	}()
	return nil
}

// askSCTP is ask, by SCTP.
func askSCTP(address string) string {
	fd, err := sctpSocket()
	if err != nil {
		return err.Error()
	}
	defer unix.Close(fd)
	to := netip.MustParseAddrPort(address)
	if err := unix.Connect(fd, &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()}); err != nil {
		return err.Error()
	}
	said := make([]byte, len("255.255.255.255"))
	count, err := unix.Read(fd, said)
	if err != nil {
		return err.Error()
	}
	return string(said[:count])
}
