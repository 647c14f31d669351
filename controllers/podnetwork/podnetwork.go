package podnetwork

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"

	"github.com/setpoint-io/setpoint/internal/servicerange"
)

const (
	// DefaultCIDR and DefaultNodeMaskSize are those of a cluster whose servers were not told others.
	DefaultCIDR         = "10.42.0.0/16"
	DefaultNodeMaskSize = 24
	// DefaultNodeMaskSize6 is upstream's, of a cluster with a range of IPv6.
	DefaultNodeMaskSize6 = 64
	// maxNodeRangesBits bounds how many ranges of nodes there are: 2^16, as upstream.
	maxNodeRangesBits = 16
	// minNodeHostBits leaves a node room for one pod beside its gateway.
	minNodeHostBits = 2
)

// These say what is wrong with a flag.
var (
	ErrCIDR = errors.New("--pod-cidr must be an IPv4 range such as " + DefaultCIDR +
		", or that and one of IPv6 such as " + DefaultCIDR + ",fd42::/56: a cluster has IPv4, and has it first")
	ErrOverlap      = errors.New("--pod-cidr and --service-cidr must not overlap")
	ErrFamilies     = errors.New("--pod-cidr and --service-cidr must both have one range, or both have two")
	ErrNodeMaskSize = fmt.Errorf(
		"--node-cidr-mask-size must be from the prefix of --pod-cidr to %d more, and at most %d",
		maxNodeRangesBits,
		32-minNodeHostBits,
	)
	ErrNodeMaskSize6 = fmt.Errorf(
		"--node-cidr-mask-size-ipv6 must be from the prefix of the second range of --pod-cidr to %d more, "+
			"and leave a node as many addresses as --node-cidr-mask-size does",
		maxNodeRangesBits,
	)
	ErrNotDual = errors.New("--node-cidr-mask-size-ipv6 needs a second range, of IPv6, in --pod-cidr")
)

// Network is where pods have their addresses from: each node has a part of CIDR with a
// prefix of NodeMaskSize bits. What is zero is not said.
type Network struct {
	CIDR         netip.Prefix
	NodeMaskSize int
	// CIDR6 and NodeMaskSize6 are the same of IPv6; zero: the cluster has IPv4 only.
	CIDR6         netip.Prefix
	NodeMaskSize6 int
	// Services is where Services have their addresses from. It never changes.
	Services netip.Prefix
	// Services6 is the same of IPv6. A cluster of IPv4 only may get one; then it never changes.
	Services6 netip.Prefix
}

// Flags are what a server is told; each may be empty or 0.
type Flags struct {
	CIDR          string // --pod-cidr
	NodeMaskSize  int    // --node-cidr-mask-size
	NodeMaskSize6 int    // --node-cidr-mask-size-ipv6
	Services      string // --service-cidr
}

// Default is the network of a cluster whose servers were not told another.
func Default() Network {
	return Network{CIDR: netip.MustParsePrefix(DefaultCIDR), NodeMaskSize: DefaultNodeMaskSize, Services: servicerange.Default}
}

// Parse reads the flags.
func Parse(flags Flags) (n Network, err error) {
	n.NodeMaskSize, n.NodeMaskSize6 = flags.NodeMaskSize, flags.NodeMaskSize6
	if flags.CIDR != "" {
		var ok bool
		if n.CIDR, n.CIDR6, ok = servicerange.Split(flags.CIDR); !ok {
			return n, fmt.Errorf("%q: %w", flags.CIDR, ErrCIDR)
		}
	}
	if n.Services, n.Services6, err = servicerange.Parse(flags.Services); err != nil {
		return n, err
	}
	return n, n.Or(Default()).Validate()
}

// IsDual reports whether pods and Services have addresses of IPv6 too.
func (n Network) IsDual() bool { return n.CIDR6.IsValid() }

// ServiceRanges are those of Services: the default one if none is said.
func (n Network) ServiceRanges() []netip.Prefix {
	ranges := []netip.Prefix{servicerange.Or(n.Services)}
	if n.Services6.IsValid() {
		ranges = append(ranges, n.Services6)
	}
	return ranges
}

// Or fills what is not said.
func (n Network) Or(other Network) Network {
	n.CIDR, n.CIDR6 = orPrefix(n.CIDR, other.CIDR), orPrefix(n.CIDR6, other.CIDR6)
	n.Services, n.Services6 = orPrefix(n.Services, other.Services), orPrefix(n.Services6, other.Services6)
	n.NodeMaskSize, n.NodeMaskSize6 = cmp.Or(n.NodeMaskSize, other.NodeMaskSize), cmp.Or(n.NodeMaskSize6, other.NodeMaskSize6)
	if n.IsDual() {
		n.NodeMaskSize6 = cmp.Or(n.NodeMaskSize6, DefaultNodeMaskSize6)
	}
	return n
}

func orPrefix(prefix, other netip.Prefix) netip.Prefix {
	if prefix.IsValid() {
		return prefix
	}
	return other
}

// Validate judges a whole network.
func (n Network) Validate() error {
	switch {
	case !n.CIDR.Addr().Is4() || n.CIDR != n.CIDR.Masked():
		return fmt.Errorf("%s: %w", n.CIDR, ErrCIDR)
	case !masksWell(n.CIDR, n.NodeMaskSize):
		return fmt.Errorf("%d with %s: %w", n.NodeMaskSize, n.CIDR, ErrNodeMaskSize)
	case n.CIDR.Overlaps(n.Services):
		return fmt.Errorf("%s and %s: %w", n.CIDR, n.Services, ErrOverlap)
	}
	if err := n.validate6(); err != nil {
		return err
	}
	return servicerange.Validate(n.Services, n.Services6)
}

func (n Network) validate6() error {
	switch {
	case n.IsDual() != n.Services6.IsValid():
		return fmt.Errorf("%s and %s: %w", servicerange.Join(n.CIDR, n.CIDR6), servicerange.Join(n.Services, n.Services6), ErrFamilies)
	case !n.IsDual() && n.NodeMaskSize6 != 0:
		return fmt.Errorf("%d: %w", n.NodeMaskSize6, ErrNotDual)
	case !n.IsDual():
		return nil
	case n.CIDR6 != n.CIDR6.Masked():
		return fmt.Errorf("%s: %w", n.CIDR6, ErrCIDR)
	case !masksWell(n.CIDR6, n.NodeMaskSize6) || 128-n.NodeMaskSize6 < 32-n.NodeMaskSize: // a pod has the same number in both
		return fmt.Errorf("%d with %s: %w", n.NodeMaskSize6, n.CIDR6, ErrNodeMaskSize6)
	case n.CIDR6.Overlaps(n.Services6):
		return fmt.Errorf("%s and %s: %w", n.CIDR6, n.Services6, ErrOverlap)
	}
	return nil
}

// masksWell reports whether a range has not too many parts of this size, and each of them room for pods.
func masksWell(cidr netip.Prefix, size int) bool {
	return size >= cidr.Bits() && size <= min(cidr.Bits()+maxNodeRangesBits, cidr.Addr().BitLen()-minNodeHostBits)
}

// Range reads the range of a node and reports whether it is one that this network gives, of either family.
func (n Network) Range(text string) (netip.Prefix, bool) {
	p, err := netip.ParsePrefix(text)
	if err != nil || p != p.Masked() {
		return p, false
	}
	if p.Addr().Is4() {
		return p, p.Bits() == n.NodeMaskSize && n.CIDR.Contains(p.Addr())
	}
	return p, p.Bits() == n.NodeMaskSize6 && n.CIDR6.Contains(p.Addr())
}

// String implements fmt.Stringer.
func (n Network) String() string {
	text := fmt.Sprintf("%s by /%d", n.CIDR, n.NodeMaskSize)
	if n.IsDual() {
		text += fmt.Sprintf(", %s by /%d", n.CIDR6, n.NodeMaskSize6)
	}
	return text
}
