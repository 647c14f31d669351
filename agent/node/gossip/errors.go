package gossip

import "errors"

var (
	// ErrNoKey refuses to run unencrypted.
	ErrNoKey = errors.New("gossip needs a key of 32 bytes")
	// ErrNoName refuses a member without a name or a role.
	ErrNoName = errors.New("a gossip member needs a name and a role")
	// ErrBadAddress says which address cannot be used.
	ErrBadAddress = errors.New("gossip address")
)
