package servicerange

import (
	"errors"
	"fmt"
	"net/netip"
)

const (
	// maxHostBits bounds a range as upstream's flag does, minHostBits leaves room for the address of DNS and some Services.
	maxHostBits = 20
	minHostBits = 4
	// apiHost and dnsHost are which addresses of the range those are.
	apiHost, dnsHost = 1, 10
)

// Default is the range of a cluster whose servers were not told another.
var Default = netip.MustParsePrefix("10.96.0.0/16")

// ErrFlag says what is wrong with the flag.
var ErrFlag = errors.New("--service-cidr must be one IPv4 range, /12 to /28, such as 10.96.0.0/16")

// Parse reads the flag; "" is the zero Prefix: not said.
func Parse(text string) (netip.Prefix, error) {
	if text == "" {
		return netip.Prefix{}, nil
	}
	prefix, err := netip.ParsePrefix(text)
	if err != nil || Validate(prefix) != nil {
		return netip.Prefix{}, fmt.Errorf("%q: %w", text, ErrFlag)
	}
	return prefix, nil
}

// Validate judges a range.
func Validate(prefix netip.Prefix) error {
	host := prefix.Addr().BitLen() - prefix.Bits()
	if !prefix.Addr().Is4() || prefix != prefix.Masked() || host > maxHostBits || host < minHostBits {
		return fmt.Errorf("%s: %w", prefix, ErrFlag)
	}
	return nil
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
