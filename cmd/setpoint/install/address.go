package install

import (
	"cmp"
	"errors"
	"net"
	"os"
	"strings"
)

// anywhere is an address of which the kernel only tells by which of the machine's own it would be reached (RFC 5737): nothing is sent.
const anywhere = "192.0.2.1:9"

var errNoAddress = errors.New("this machine has no address, or more than one, by which others may reach it: choose one with --advertise-address")

// ownAddress is the address of this machine by which it reaches the first of others, or, without any, by which it reaches the world.
func ownAddress(others []string) (string, error) {
	towards := anywhere
	if len(others) > 0 {
		towards = others[0]
	}
	if conn, err := net.Dial("udp", towards); err == nil {
		defer conn.Close()
		host, _, err := net.SplitHostPort(conn.LocalAddr().String())
		return host, err
	}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return "", err
	}
	return onlyAddress(addresses)
}

// onlyAddress is the one of IPv4 that others may reach, or the one of IPv6 if there is none.
func onlyAddress(addresses []net.Addr) (string, error) {
	var v4, v6 []string
	for _, address := range addresses {
		network, ok := address.(*net.IPNet)
		switch {
		case !ok || !network.IP.IsGlobalUnicast():
		case network.IP.To4() != nil:
			v4 = append(v4, network.IP.String())
		default:
			v6 = append(v6, network.IP.String())
		}
	}
	switch {
	case len(v4) == 1:
		return v4[0], nil
	case len(v4) == 0 && len(v6) == 1:
		return v6[0], nil
	}
	return "", errNoAddress
}

// hostName is the machine's name, as a node is called by default.
func hostName() (string, error) {
	name, err := os.Hostname()
	return strings.ToLower(name), err
}

// serverName is another one than the node's, so that a machine may be both.
func serverName(given, host string) string { return cmp.Or(given, "server-"+host) }
