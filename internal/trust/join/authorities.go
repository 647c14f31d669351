package join

import (
	"bytes"
	"errors"
	"sync"

	"github.com/setpoint-io/setpoint/internal/trust"
)

// errOtherSigner says that the certificates are to be renewed once more.
var errOtherSigner = errors.New("the server has signed with another authority than the one that signs now: one of the servers is behind")

// told are the authorities that servers have told last, in PEM.
type told struct {
	// wake says that there are others.
	wake chan struct{}

	mu  sync.Mutex
	pem *[]byte
	// changing: they are not taken yet, or not by all that the node holds.
	changing bool
}

func (t *told) tell(pem []byte) {
	t.mu.Lock()
	t.pem, t.changing = &pem, true
	t.mu.Unlock()
	select {
	case t.wake <- struct{}{}:
	default: // it will look anyway
	}
}

// newest is nil if none were told.
func (t *told) newest() *[]byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.pem
}

// taken says that the node holds what was told, if that is the newest.
func (t *told) taken(pem *[]byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pem == pem {
		t.changing = false
	}
}

func (t *told) isChanging() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.changing
}

// changing stands among the hashes while what the node holds is about to change: no server takes it for sure.
const changing = "changing"

// AuthoritiesHeld implements session.Client.AuthoritiesHeld: what the agent shows and believes now.
func (m *Membership) AuthoritiesHeld() []string {
	isChanging, id := m.told.isChanging(), m.client.Identity()
	if id == nil {
		return nil
	}
	caPEM, _, err := trust.SignerFirst(id, id.CAPEM) // a crash may have left another order
	if err != nil {
		return nil
	}
	pins, _ := (&trust.Identity{CAPEM: caPEM}).Pins() // they were read just now
	if isChanging {
		pins = append(pins, changing)
	}
	return pins
}

// Follow implements session.Client.Authorities: Run believes what a server has told, and has the certificates renewed if another one
// signs now. It may be told the same again: what failed is tried again.
func (m *Membership) Follow(authorities []byte) { m.told.tell(authorities) }

// believe believes what servers have told, and reports whether the authority that signs now has signed the node's certificate. It fails as
// long as the disk does not have what is held: an agent that starts again with less than it said would be locked out.
func (m *Membership) believe(news *[]byte) (signs bool, err error) {
	if news == nil {
		return true, m.save()
	}
	authorities, signs, err := trust.SignerFirst(m.held.Identity, *news)
	if err != nil {
		return signs, err
	}
	if !bytes.Equal(authorities, m.held.Identity.CAPEM) {
		m.config.Logger.Info("the authorities that are believed are others now", "node", m.config.NodeName, "renews", !signs)
		err = m.use(m.held.Believing(authorities))
	}
	return signs, errors.Join(err, m.save())
}
