package rotations

import (
	"sync"
	"time"

	"github.com/setpoint-io/setpoint/internal/rotation"
)

// issuedFormat is the fingerprint of certificates that are renewed: that they are made after that time.
const issuedFormat = time.RFC3339Nano

// Certificates is the Mechanism of a server's own certificate.
type Certificates struct {
	// Issued is when the one in use was made, Renew makes and uses another.
	Issued func() time.Time
	Renew  func(now time.Time) error
	// Now is the time by which certificates are made and judged.
	Now func() time.Time

	mu sync.Mutex
	// renewed is the last order that this process has followed: the clock of who ordered may be ahead.
	renewed string
}

// Held implements Mechanism.
func (c *Certificates) Held() (uses string, trusts []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.renewed, nil
}

// New implements Mechanism.
func (c *Certificates) New() (key []byte, fingerprint string, err error) {
	return nil, c.Now().UTC().Format(issuedFormat), nil
}

// Key implements Mechanism: each server has a key of its own, which leaves it never.
func (c *Certificates) Key(string) []byte { return nil }

// Follow implements Mechanism.
func (c *Certificates) Follow(s rotation.State, _ rotation.Keys) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.renewed == s.To {
		return nil
	}
	ordered, err := time.Parse(issuedFormat, s.To)
	if err != nil {
		return err
	}
	if s.UnderWay() && c.Issued().Before(ordered) {
		if err := c.Renew(c.Now()); err != nil {
			return err
		}
	}
	c.renewed = s.To
	return nil
}
