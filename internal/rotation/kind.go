package rotation

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Kind is what is rotated.
type Kind string

// Kinds that can be rotated, or are refused by Validate with what to do instead.
const (
	Serving       Kind = "serving"
	AccountKey    Kind = "sa-key"
	GossipKey     Kind = "gossip-key"
	CA            Kind = "ca"
	EncryptionKey Kind = "encryption-key"
	FrontProxy    Kind = "front-proxy"
	Tokens        Kind = "tokens"
)

// Kinds are all, in the order in which they are shown.
func Kinds() []Kind {
	return []Kind{Serving, AccountKey, GossipKey, CA, EncryptionKey, FrontProxy, Tokens}
}

// Built are those that servers of this release can rotate.
func Built() []Kind { return []Kind{Serving, AccountKey, GossipKey, EncryptionKey, FrontProxy, CA} }

const (
	// AccountKeyKept is how long the old key of service accounts is trusted after the new one is used, if nothing else is asked for: the
	// tokens of all pods are renewed within a day, whatever their life.
	AccountKeyKept = 25 * time.Hour
	// AccountKeyPublished is how long the new key is published before it is used, unless the old one is kept for less: others that check
	// tokens may remember the key set so long.
	AccountKeyPublished = time.Hour
	// EncryptionKeyKept is how long the old key of what is stored is kept after nothing is stored any more that it has encrypted, unless more
	// is asked for: until then whatever was being written with it is in the store, and is written again.
	EncryptionKeyKept = 90 * time.Second
	// FrontProxyKept is how long the old authority of front proxies is told of after the new one is used, if nothing else is asked for, and
	// how long the new one is told of before it is used: aggregated servers follow the ConfigMap, and have a minute for it.
	FrontProxyKept = time.Minute
	// KeptMax bounds what may be asked for.
	KeptMax = 10 * 365 * 24 * time.Hour
)

var (
	// ErrKind says that a text names nothing that can be rotated.
	ErrKind = errors.New("want one of " + list(Kinds()))
	// ErrNotBuilt says that this release cannot rotate it.
	ErrNotBuilt = errors.New("cannot be rotated by this release")
	// ErrKept says that it cannot be kept so long.
	ErrKept = fmt.Errorf("the old one is kept for 0s to %s", KeptMax)
	// ErrKeptShort says that it has to be kept for longer.
	ErrKeptShort = fmt.Errorf("the old encryption-key is kept for %s at least: what is being written now may be encrypted with it", EncryptionKeyKept)
	// ErrKeepsNothing says that nothing is kept of the kind.
	ErrKeepsNothing = errors.New("nothing old is kept of it: leave out --keep-old")
)

func list(kinds []Kind) string {
	var names []string
	for _, k := range kinds {
		names = append(names, string(k))
	}
	return strings.Join(names, ", ")
}

// instead is what to do about kinds that cannot be rotated.
var instead = map[Kind]string{
	Tokens: "each ends by itself, and nobody but you can hand out another: run 'setpoint token list', 'setpoint token create', and 'setpoint token delete ID' for each that is there",
}

// Validate fails with ErrKind or ErrNotBuilt.
func (k Kind) Validate() error {
	switch {
	case !slices.Contains(Kinds(), k):
		return fmt.Errorf("%w, not %q", ErrKind, string(k))
	case !slices.Contains(Built(), k):
		return fmt.Errorf("%s %w: %s", k, ErrNotBuilt, instead[k])
	}
	return nil
}

// first is the phase in which a rotation begins: certificates of an authority that is trusted already are used at once.
func (k Kind) first() Phase {
	if k == Serving {
		return Use
	}
	return Trust
}

// after is the phase after one.
func (k Kind) after(p Phase) Phase {
	switch {
	case p == Trust:
		return Use
	case p == Use && k != Serving:
		return Drop
	}
	return Done
}

// kept is how long the old one is kept if nothing else is asked for.
func (k Kind) kept(wanted *time.Duration) (time.Duration, error) {
	switch {
	case k == Serving && wanted != nil:
		return 0, ErrKeepsNothing
	case wanted == nil && k == AccountKey:
		return AccountKeyKept, nil
	case wanted == nil && k == EncryptionKey:
		return EncryptionKeyKept, nil
	case wanted == nil && k == FrontProxy:
		return FrontProxyKept, nil
	case wanted == nil && k == CA:
		return CAKept, nil
	case wanted == nil:
		return 0, nil
	case k == EncryptionKey && *wanted >= 0 && *wanted < EncryptionKeyKept:
		return 0, ErrKeptShort
	case *wanted < 0 || *wanted > KeptMax:
		return 0, fmt.Errorf("%w, not for %s", ErrKept, *wanted)
	}
	return *wanted, nil
}
