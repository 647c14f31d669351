package podnetwork

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/setpoint-io/setpoint/internal/servicerange"
)

const (
	// DefaultCIDR and DefaultNodeMaskSize are those of a cluster whose servers were not told others.
	DefaultCIDR         = "10.42.0.0/16"
	DefaultNodeMaskSize = 24
	// maxNodeRangesBits bounds how many ranges of nodes there are: 2^16, as upstream.
	maxNodeRangesBits = 16
	// maxNodeMaskSize leaves a node room for one pod beside its gateway.
	maxNodeMaskSize = 30
)

var (
	// ErrCIDR, ErrOverlap and ErrNodeMaskSize say what is wrong with a flag.
	ErrCIDR         = errors.New("--pod-cidr must be an IPv4 range such as " + DefaultCIDR)
	ErrOverlap      = errors.New("--pod-cidr and --service-cidr must not overlap")
	ErrNodeMaskSize = fmt.Errorf(
		"--node-cidr-mask-size must be from the prefix of --pod-cidr to %d more, and at most %d",
		maxNodeRangesBits,
		maxNodeMaskSize,
	)
)

// Network is where pods have their addresses from: each node has a part of CIDR with a
// prefix of NodeMaskSize bits. What is zero is not said.
type Network struct {
	CIDR         netip.Prefix
	NodeMaskSize int
	// Services is where Services have their addresses from. It never changes.
	Services netip.Prefix
}

// Default is the network of a cluster whose servers were not told another.
func Default() Network {
	return Network{CIDR: netip.MustParsePrefix(DefaultCIDR), NodeMaskSize: DefaultNodeMaskSize, Services: servicerange.Default}
}

// Parse reads the flags --pod-cidr, --node-cidr-mask-size and --service-cidr; each may be empty or 0.
func Parse(cidr string, nodeMaskSize int, services string) (n Network, err error) {
	n.NodeMaskSize = nodeMaskSize
	if cidr != "" {
		if n.CIDR, err = netip.ParsePrefix(cidr); err != nil {
			return n, fmt.Errorf("%q: %w", cidr, ErrCIDR)
		}
	}
	if n.Services, err = servicerange.Parse(services); err != nil {
		return n, err
	}
	return n, n.Or(Default()).Validate()
}

// Or fills what is not said.
func (n Network) Or(other Network) Network {
	if !n.CIDR.IsValid() {
		n.CIDR = other.CIDR
	}
	if n.NodeMaskSize == 0 {
		n.NodeMaskSize = other.NodeMaskSize
	}
	if !n.Services.IsValid() {
		n.Services = other.Services
	}
	return n
}

// Validate judges a whole network.
func (n Network) Validate() error {
	switch {
	case !n.CIDR.Addr().Is4() || n.CIDR != n.CIDR.Masked():
		return fmt.Errorf("%s: %w", n.CIDR, ErrCIDR)
	case n.NodeMaskSize < n.CIDR.Bits() || n.NodeMaskSize > min(n.CIDR.Bits()+maxNodeRangesBits, maxNodeMaskSize):
		return fmt.Errorf("%d with %s: %w", n.NodeMaskSize, n.CIDR, ErrNodeMaskSize)
	case n.CIDR.Overlaps(n.Services):
		return fmt.Errorf("%s and %s: %w", n.CIDR, n.Services, ErrOverlap)
	}
	return servicerange.Validate(n.Services)
}

// Range reads the range of a node and reports whether it is one that this network gives.
func (n Network) Range(text string) (netip.Prefix, bool) {
	p, err := netip.ParsePrefix(text)
	return p, err == nil && p == p.Masked() && p.Bits() == n.NodeMaskSize && n.CIDR.Contains(p.Addr())
}

// String implements fmt.Stringer.
func (n Network) String() string { return fmt.Sprintf("%s by /%d", n.CIDR, n.NodeMaskSize) }
