package nft

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"github.com/setpoint-io/setpoint/agent/net/network/networktest"
)

// TestMain runs the tests in a network namespace of their own.
func TestMain(m *testing.M) { networktest.Main(m) }

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: network namespaces")
	}
}

const (
	// smallBytes hold a few of the acknowledgements of manyRules.
	smallBytes = 4096
	manyRules  = 500
)

var testTable = &nftables.Table{Family: nftables.TableFamilyIPv4, Name: "test"}

func opened(t *testing.T, bytes int) *Conn {
	t.Helper()
	conn, err := open(bytes)
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// fill makes a chain of many rules in the table, and with wrong one that the kernel refuses.
func fill(conn *Conn, wrong bool) {
	chain := conn.AddChain(&nftables.Chain{Table: testTable, Name: "chain"})
	for range manyRules {
		conn.AddRule(&nftables.Rule{Table: testTable, Chain: chain, Exprs: []expr.Any{&expr.Verdict{Kind: expr.VerdictReturn}}})
	}
	if wrong {
		conn.AddRule(&nftables.Rule{Table: testTable, Chain: &nftables.Chain{Table: testTable, Name: "missing"}})
	}
}

func rules(t *testing.T) int {
	t.Helper()
	list, err := opened(t, bytesMax).GetRules(testTable, &nftables.Chain{Table: testTable, Name: "chain"})
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return len(list)
}

func remove(t *testing.T) {
	t.Helper()
	conn := opened(t, bytesMax)
	conn.ReplaceTable(testTable)
	conn.DelTable(testTable)
	if err := conn.Flush(); err != nil {
		t.Fatal(err)
	}
}

// TestWhatBecameOfATransaction: an answer that does not fit into the buffer says nothing about the transaction; Flush looks, and does
// not call a table missing that is in force, or in force what was refused.
func TestWhatBecameOfATransaction(t *testing.T) {
	needRoot(t)
	for name, test := range map[string]struct {
		bytes   int
		replace bool // it makes the table
		wrong   bool
		err     error
		rules   int
	}{
		"fits":                             {bytesMax, true, false, nil, manyRules},
		"fits, refused":                    {bytesMax, true, true, os.ErrNotExist, 1},
		"does not fit":                     {smallBytes, true, false, nil, manyRules},
		"does not fit, refused":            {smallBytes, true, true, ErrRefused, 1},
		"does not fit, and makes no table": {smallBytes, false, false, ErrOutcomeUnknown, manyRules + 1},
	} {
		t.Run(name, func(t *testing.T) {
			remove(t)
			first := opened(t, bytesMax)
			chain := first.AddChain(&nftables.Chain{Table: first.ReplaceTable(testTable), Name: "chain"})
			first.AddRule(&nftables.Rule{Table: testTable, Chain: chain})
			if err := first.Flush(); err != nil {
				t.Fatal(err)
			}
			conn := opened(t, test.bytes)
			// The table is replaced: one rule becomes many.
			if test.replace {
				conn.ReplaceTable(testTable)
			}
			fill(conn, test.wrong)
			if err := conn.Flush(); !errors.Is(err, test.err) {
				t.Errorf("%v, want %v", err, test.err)
			}
			if got := rules(t); got != test.rules {
				t.Errorf("%d rules, want %d", got, test.rules)
			}
		})
	}
}

// TestNewTable: a table that was not there before is looked for too.
func TestNewTable(t *testing.T) {
	needRoot(t)
	for name, wrong := range map[string]bool{"taken": false, "refused": true} {
		t.Run(name, func(t *testing.T) {
			remove(t)
			conn := opened(t, smallBytes)
			conn.AddTable(testTable)
			fill(conn, wrong)
			err := conn.Flush()
			if wrong && !errors.Is(err, ErrRefused) || !wrong && err != nil {
				t.Error(err)
			}
			if got := rules(t); (got == 0) != wrong {
				t.Errorf("%d rules", got)
			}
		})
	}
}

// TestATableWhoseHandleCannotBeRead tells nothing of what became of its transaction.
func TestATableWhoseHandleCannotBeRead(t *testing.T) {
	needRoot(t)
	conn := opened(t, bytesMax)
	unreadable := &nftables.Table{Family: nftables.TableFamilyIPv4, Name: strings.Repeat("x", unix.NFT_TABLE_MAXNAMELEN)}
	if _, err := Handle(unreadable); err == nil {
		t.Fatal("the kernel reads a name that is too long")
	}
	conn.AddTable(unreadable)
	if len(conn.made) > 0 {
		t.Error("it counts as one that was not there")
	}
	if err := outcome(conn.made, unix.ENOBUFS); !errors.Is(err, ErrOutcomeUnknown) {
		t.Errorf("%v, want %v", err, ErrOutcomeUnknown)
	}
}

// TestLostAnswers are those that did not come; one that refuses is none of them.
func TestLostAnswers(t *testing.T) {
	for _, test := range []struct {
		err  error
		lost bool
	}{
		{nil, false},
		{&netlink.OpError{Op: "receive", Err: os.NewSyscallError("recvmsg", unix.ENOBUFS)}, true},
		{fmt.Errorf("conn.Receive: %w", &netlink.OpError{Op: "receive", Err: os.NewSyscallError("recvmsg", unix.ENOMEM)}), true},
		{fmt.Errorf("conn.Receive: %w", &netlink.OpError{Op: "receive", Err: unix.ENOENT}), false},
		{fmt.Errorf("SendMessages: %w", &netlink.OpError{Op: "send-messages", Err: os.NewSyscallError("sendmsg", unix.EMSGSIZE)}), false},
	} {
		if got := isLost(test.err); got != test.lost {
			t.Errorf("%v: lost %v", test.err, got)
		}
	}
}

// TestManyElements are more than a message holds.
func TestManyElements(t *testing.T) {
	needRoot(t)
	remove(t)
	const many = 3*elementsPerMessage + 1
	set := &nftables.Set{Table: testTable, Name: "numbers", KeyType: nftables.TypeInteger}
	var elements []nftables.SetElement
	for i := range uint32(many) {
		elements = append(elements, nftables.SetElement{Key: binaryutil.BigEndian.PutUint32(i)})
	}
	conn := opened(t, bytesMax)
	conn.AddTable(testTable)
	if err := errors.Join(conn.AddSet(set, elements), conn.Flush()); err != nil {
		t.Fatal(err)
	}
	if list, err := conn.GetSetElements(set); err != nil || len(list) != many {
		t.Errorf("%d elements, want %d: %v", len(list), many, err)
	}
	if err := errors.Join(conn.SetDeleteElements(set, elements[1:]), conn.Flush()); err != nil {
		t.Fatal(err)
	}
	if list, err := conn.GetSetElements(set); err != nil || len(list) != 1 {
		t.Errorf("%d elements, want 1: %v", len(list), err)
	}
	remove(t)
}

// TestListThatChanges is read again, but not for ever.
func TestListThatChanges(t *testing.T) {
	needRoot(t)
	for name, test := range map[string]struct{ changes, asked int }{
		"quiet": {0, 1}, "changed twice": {2, 3}, "changes always": {listTriesMax + 1, listTriesMax},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			_, err := whole(func() ([]int, error) {
				if asked++; asked <= test.changes {
					remove(t)
				}
				return nil, nil
			})
			if err != nil || asked != test.asked {
				t.Errorf("asked %d times, want %d: %v", asked, test.asked, err)
			}
		})
	}
	if _, err := whole(func() ([]int, error) { return nil, unix.EPERM }); !errors.Is(err, unix.EPERM) {
		t.Error(err)
	}
}

// TestSetsOfSeveralTransactions are numbered one after the other, whoever makes them: two of one transaction must not have one number.
// Without the lock the race detector refuses this.
func TestSetsOfSeveralTransactions(t *testing.T) {
	var made sync.Map
	var working sync.WaitGroup
	for range 8 {
		working.Go(func() {
			conn, err := Open()
			if err != nil {
				t.Error(err)
				return
			}
			table := &nftables.Table{Name: "t", Family: nftables.TableFamilyIPv4}
			for range 200 {
				set := &nftables.Set{Table: table, Name: "s", KeyType: nftables.TypeIPAddr}
				if err := conn.AddSet(set, nil); err != nil {
					t.Error(err)
				}
				if _, twice := made.LoadOrStore(set.ID, true); twice {
					t.Errorf("two sets have the number %d", set.ID)
				}
			}
		})
	}
	working.Wait()
}
