package command

import "fmt"

// Limits of what the log carries. A proposer packs by the first two; commands
// beyond the others are Rejected when applied, so check with Validate before.
const (
	// MaxCommands is the most commands packed into one entry.
	MaxCommands = 512
	// MaxBytes is the size at which an entry is closed; a larger command travels
	// alone.
	MaxBytes = 256 << 10
	// MaxCommandBytes is the most bytes one command may take, encoded.
	MaxCommandBytes = 4 << 20
	// MaxOps is the most operations of one command.
	MaxOps = 1024
	// MaxKeyBytes is the longest key.
	MaxKeyBytes = 1024
	// MaxUIDBytes is the longest uid.
	MaxUIDBytes = 256
	// MaxNameBytes is the longest user, field manager or request id.
	MaxNameBytes = 4096
	// MaxValueBytes is the largest value.
	MaxValueBytes = 3 << 20
	// MaxClusterIDBytes is the longest cluster id.
	MaxClusterIDBytes = 128
	// MaxLifeBytes is the longest name of a life.
	MaxLifeBytes = 64
	// HashBytes is the length of a state hash.
	HashBytes = 16
)

// Validate reports, wrapping ErrInvalid, what would make state reject the
// command on every replica.
func (c *Command) Validate() error {
	if err := c.validateShape(); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	for i := range c.Ops {
		if err := c.Ops[i].validate(len(c.Ops)); err != nil {
			return fmt.Errorf("%w: operation %d: %w", ErrInvalid, i, err)
		}
	}
	return nil
}

func (c *Command) validateShape() error {
	switch {
	case len(c.Ops) == 0:
		return fmt.Errorf("no operations")
	case len(c.Ops) > MaxOps:
		return fmt.Errorf("%d operations, limit %d", len(c.Ops), MaxOps)
	case len(c.Actor.User) > MaxNameBytes, len(c.Actor.FieldManager) > MaxNameBytes, len(c.RequestID) > MaxNameBytes:
		return fmt.Errorf("actor or request id longer than %d bytes", MaxNameBytes)
	case len(c.Cause.UID) > MaxUIDBytes:
		return fmt.Errorf("cause uid longer than %d bytes", MaxUIDBytes)
	case c.Size() > MaxCommandBytes:
		return fmt.Errorf("%d bytes, limit %d", c.Size(), MaxCommandBytes)
	}
	return nil
}

func (o *Op) validate(ops int) error {
	if o.Precondition > lastPrecondition {
		return fmt.Errorf("precondition %d unknown", o.Precondition)
	}
	if o.Kind.IsSystem() {
		return o.validateSystem(ops)
	}
	return o.validateKeyed()
}

func (o *Op) validateKeyed() error {
	switch {
	case o.Kind != Put && o.Kind != Delete && o.Kind != Check:
		return fmt.Errorf("kind %d unknown", o.Kind)
	case o.Key == "":
		return fmt.Errorf("empty key")
	case len(o.Key) > MaxKeyBytes:
		return fmt.Errorf("key of %d bytes, limit %d", len(o.Key), MaxKeyBytes)
	case len(o.UID) > MaxUIDBytes:
		return fmt.Errorf("uid of %d bytes, limit %d", len(o.UID), MaxUIDBytes)
	case len(o.Value) > MaxValueBytes:
		return fmt.Errorf("value of %d bytes, limit %d", len(o.Value), MaxValueBytes)
	case o.Precondition == AtRevision && o.Revision == 0:
		return fmt.Errorf("precondition at revision 0; use Absent")
	}
	return nil
}

func (o *Op) validateSystem(ops int) error {
	switch {
	case ops != 1:
		return fmt.Errorf("system operation %d must be alone in its command", o.Kind)
	case o.Kind == StateHash && len(o.Value) != HashBytes:
		return fmt.Errorf("state hash of %d bytes, want %d", len(o.Value), HashBytes)
	case o.Kind == SetClusterID && (len(o.Value) == 0 || len(o.Value) > MaxClusterIDBytes):
		return fmt.Errorf("cluster id of %d bytes, want 1 to %d", len(o.Value), MaxClusterIDBytes)
	case o.Kind == SetFeatureLevel && len(o.Value) > MaxLifeBytes:
		return fmt.Errorf("name of a life of %d bytes, limit %d", len(o.Value), MaxLifeBytes)
	}
	return nil
}
