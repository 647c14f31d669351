package nft

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	"github.com/google/nftables"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

const (
	// bytesMax is the largest transaction, and the most that its acknowledgements take: about 100,000 endpoints of Services, 500,000
	// peers of policies. A larger one is refused whole. The kernel takes memory only for what is sent.
	bytesMax = 64 << 20
	// elementsPerMessage keeps a message of set elements below the 64 KiB that its length can tell.
	elementsPerMessage = 400
)

var (
	// ErrOutcomeUnknown says that a transaction may have taken effect: the answers are lost, and no table tells what became of it. Whoever
	// meets it has to make what it wants anew.
	ErrOutcomeUnknown = errors.New("nftables: whether the kernel took the changes is not known")
	// ErrRefused says that the kernel refused a transaction, and that its reasons are lost: there were too many answers.
	ErrRefused = errors.New("nftables: the kernel refused the changes")
)

// Conn collects one transaction, which [Conn.Flush] sends: all of it takes effect, or nothing. It reads too. It has no lock.
type Conn struct {
	*nftables.Conn
	made []madeTable
}

// madeTable is a table that the transaction makes, with the handle of the one that had its name before, as the kernel has told it: it
// never gives a handle again.
type madeTable struct {
	table  *nftables.Table
	handle uint64 // 0: there was none
}

// Open returns a connection that is dialled with each call, so it need not be closed.
func Open() (*Conn, error) { return open(bytesMax) }

// open is Open with another buffer for what the kernel answers.
func open(answerBytes int) (*Conn, error) {
	conn, err := nftables.New(nftables.WithSockOptions(func(c *netlink.Conn) error {
		return errors.Join(c.SetWriteBuffer(bytesMax), c.SetReadBuffer(answerBytes))
	}))
	if err != nil {
		return nil, fmt.Errorf("nftables: %w", err)
	}
	return &Conn{Conn: conn}, nil
}

// AddTable makes a table, if it is not there. By a table that is new Flush knows whether the transaction took effect; one whose handle of
// before cannot be read tells nothing, and does not count.
func (c *Conn) AddTable(table *nftables.Table) *nftables.Table {
	if handle, err := Handle(table); err == nil {
		c.made = append(c.made, madeTable{table, handle})
	}
	return c.Conn.AddTable(table)
}

// ReplaceTable makes an empty table in place of whatever has its name.
func (c *Conn) ReplaceTable(table *nftables.Table) *nftables.Table {
	c.AddTable(table) // what is not there cannot be deleted
	c.DelTable(table)
	return c.Conn.AddTable(table)
}

// setIDs is held while the library numbers a set, by which its transaction refers to it: nftables 0.3.0 has one counter for all connections
// and no lock, so two sets of a transaction could have one number. (Mended in its pull request 307, which is not released yet.)
var setIDs sync.Mutex

// AddSet makes a set with these elements.
func (c *Conn) AddSet(set *nftables.Set, elements []nftables.SetElement) error {
	setIDs.Lock()
	err := c.Conn.AddSet(set, nil)
	setIDs.Unlock()
	return errors.Join(err, c.SetAddElements(set, elements))
}

// SetAddElements adds any number of elements.
func (c *Conn) SetAddElements(set *nftables.Set, elements []nftables.SetElement) error {
	return inParts(c.Conn.SetAddElements, set, elements)
}

// SetDeleteElements deletes any number of elements. One that is not there fails the transaction.
func (c *Conn) SetDeleteElements(set *nftables.Set, elements []nftables.SetElement) error {
	return inParts(c.Conn.SetDeleteElements, set, elements)
}

// inParts hands the elements on, as many as a message can hold.
func inParts(do func(*nftables.Set, []nftables.SetElement) error, set *nftables.Set, elements []nftables.SetElement) error {
	var err error
	for some := range slices.Chunk(elements, elementsPerMessage) {
		err = errors.Join(err, do(set, some))
	}
	return err
}

// Flush sends the transaction; without any it does nothing. After an error nothing of it is in force, except after [ErrOutcomeUnknown].
func (c *Conn) Flush() error {
	made := c.made
	c.made = nil
	err := c.Conn.Flush()
	if isLost(err) {
		return outcome(made, err)
	}
	return err
}

// isLost reports an error by which an answer did not come, in contrast to an answer that refuses. The kernel may have taken what was sent.
func isLost(err error) bool {
	failed, ok := errors.AsType[*os.SyscallError](err)
	return errors.Is(err, unix.ENOBUFS) || ok && failed.Syscall == "recvmsg"
}

// outcome tells what became of a transaction whose acknowledgements are lost. They are as many as its messages, so it can be one that is
// in order. A transaction is taken whole, so one table stands for all of it.
func outcome(made []madeTable, lost error) error {
	if len(made) == 0 {
		return fmt.Errorf("%w: %w", ErrOutcomeUnknown, lost)
	}
	now, err := Handle(made[0].table)
	if err != nil {
		return errors.Join(fmt.Errorf("%w: %w", ErrOutcomeUnknown, lost), err)
	}
	if now == made[0].handle {
		return fmt.Errorf("%w: %w", ErrRefused, lost)
	}
	return nil
}
