package servicerange

import (
	"errors"
	"fmt"
	"net/netip"
)

const (
	// maxHostBits bounds a range of IPv4 as upstream's flag does, maxHostBits6 one of IPv6 at what one link has; minHostBits leaves
	// room for the address of DNS and some Services.
	maxHostBits  = 20
	maxHostBits6 = 64
	minHostBits  = 4
	// apiHost and dnsHost are which addresses of the range those are.
	apiHost, dnsHost = 1, 10
)

// NodePortMin and NodePortMax are the first and the last node port.
const (
	NodePortMin = 30000
	NodePortMax = 32767
)

// IsNodePort reports whether a port is one that Services get on all nodes, or may get.
func IsNodePort(number int32) bool { return number >= NodePortMin && number <= NodePortMax }

// What is in force stands in a ConfigMap of kube-system, under a key that has what Split reads: servers give out addresses of these
// ranges, and agents serve them.
const (
	ConfigMap    = "pod-network"
	ConfigMapKey = "serviceCIDR"
	// ConfigMapPodsKey has the ranges of pods, in the same form.
	ConfigMapPodsKey = "podCIDR"
)

// Default is the range of a cluster whose servers were not told another.
var Default = netip.MustParsePrefix("10.96.0.0/16")

// ErrFlag says what is wrong with the flag.
var ErrFlag = errors.New("--service-cidr must be one IPv4 range, /12 to /28, such as 10.96.0.0/16, or that and one of IPv6, " +
	"/64 to /124, such as 10.96.0.0/16,fd96::/112: a cluster has IPv4, and has it first")

// Parse reads the flag; a zero Prefix is not said.
func Parse(text string) (four, six netip.Prefix, err error) {
	if text == "" {
		return four, six, nil
	}
	four, six, ok := Split(text)
	if !ok || Validate(four, six) != nil {
		return netip.Prefix{}, netip.Prefix{}, fmt.Errorf("%q: %w", text, ErrFlag)
	}
	return four, six, nil
}

// Validate judges the range of IPv4 and, unless it is zero, that of IPv6.
func Validate(four, six netip.Prefix) error {
	if !four.Addr().Is4() || !fits(four, maxHostBits) || six.IsValid() && !fits(six, maxHostBits6) {
		return fmt.Errorf("%s: %w", Join(four, six), ErrFlag)
	}
	return nil
}

func fits(prefix netip.Prefix, hostBitsMax int) bool {
	host := prefix.Addr().BitLen() - prefix.Bits()
	return prefix == prefix.Masked() && host >= minHostBits && host <= hostBitsMax
}

// Or is the range, or Default if it is not said.
func Or(prefix netip.Prefix) netip.Prefix {
	if prefix.IsValid() {
		return prefix
	}
	return Default
}

// API is the address of the Service default/kubernetes.
func API(prefix netip.Prefix) netip.Addr { return at(prefix, apiHost) }

// DNS is the address of the Service kube-system/kube-dns.
func DNS(prefix netip.Prefix) netip.Addr { return at(prefix, dnsHost) }

func at(prefix netip.Prefix, host int) netip.Addr {
	address := Or(prefix).Masked().Addr()
	for range host {
		address = address.Next()
	}
	return address
}
