package podlistener

import (
	"net"
	"net/netip"
	"sync/atomic"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// Listener is a second way in to a server that listens on loopback: pods of this
// machine reach it at the machine's own address, which they find in the Service
// kubernetes. Everybody else stays outside.
type Listener struct {
	net.Listener
	pods atomic.Pointer[netip.Prefix] // never nil
}

// Admit says which addresses pods have, from now on.
func (l *Listener) Admit(pods netip.Prefix) { l.pods.Store(&pods) }

// Admitted is which addresses pods have now.
func (l *Listener) Admitted() netip.Prefix { return *l.pods.Load() }

// Open opens the port of a loopback listener at the address of the interface
// with the default route, which is what upstream tells pods. It returns nothing if
// there is no such interface, or the port is taken there: then pods have no API.
func Open(loopback net.Listener, pods netip.Prefix) (listener *Listener, address string) {
	ip, err := utilnet.ResolveBindAddress(net.IPv4zero)
	if err != nil || ip.To4() == nil || ip.IsLoopback() {
		return nil, ""
	}
	_, port, err := net.SplitHostPort(loopback.Addr().String())
	if err != nil {
		return nil, ""
	}
	open, err := net.Listen("tcp4", net.JoinHostPort(ip.String(), port))
	if err != nil {
		return nil, ""
	}
	listener = &Listener{Listener: open}
	listener.Admit(pods)
	return listener, ip.String()
}

// Accept implements net.Listener.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil || l.fromHere(conn) {
			return conn, err
		}
		_ = conn.Close()
	}
}

// fromHere reports whether the other side is a pod, or this machine.
func (l *Listener) fromHere(conn net.Conn) bool {
	here, err := netip.ParseAddrPort(conn.LocalAddr().String())
	if err != nil {
		return false
	}
	there, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	if err != nil {
		return false
	}
	return there.Addr().Unmap() == here.Addr().Unmap() || l.pods.Load().Contains(there.Addr().Unmap())
}
