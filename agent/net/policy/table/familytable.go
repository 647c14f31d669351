package table

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/nftables"

	"github.com/setpoint-io/setpoint/agent/net/network/nft"
	"github.com/setpoint-io/setpoint/agent/net/policy/plan"
)

// packetTime is longer than the kernel takes to judge one packet.
const packetTime = 5 * time.Millisecond

// familyTable is what the kernel enforces for one family. mu guards the rest: number is that of the table in the kernel, and current
// what it has; nil: not known.
//
// A transaction is not atomic for a packet that is being judged: it may meet rules of before it and elements of
// after it. So nothing is led to before it is complete, and nothing is removed while a packet may still be on its way there.
type familyTable struct {
	family  family
	prefix  string
	mu      sync.Mutex
	number  int
	current *plan.Table
}

// apply makes the kernel enforce next, which must not be changed later.
func (t *familyTable) apply(next *plan.Table) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.current != nil && t.change(next) == nil {
		t.current = next
		return nil
	} // somebody has changed the table: make a new one
	t.current = nil
	if err := t.replace(next); err != nil {
		return fmt.Errorf("nftables table %s: %w", t.name(), err)
	}
	t.current = next
	return nil
}

// change adds what is new, leads pods to it, and removes what is left.
func (t *familyTable) change(next *plan.Table) error {
	if reflect.DeepEqual(t.current, next) {
		return nil
	}
	err := t.tell(func(r *ruleset) error { return r.extend(t.current, next) })
	if err == nil {
		err = t.tell(func(r *ruleset) error { return r.lead(t.current, next) })
	}
	if err != nil || !leaves(t.current, next) {
		return err
	}
	time.Sleep(packetTime)
	return t.tell(func(r *ruleset) error { return r.tidy(t.current, next) })
}

// replace makes a table beside those that are there, of this process or a former one: what any of them forbids does not pass. Then
// those are removed.
func (t *familyTable) replace(next *plan.Table) error {
	others, err := t.numbers()
	if err != nil {
		return err
	}
	t.number = slices.Max(append(others, 0)) + 1
	if err := t.tell(func(r *ruleset) error { return r.fill(next) }); err != nil || len(others) == 0 {
		return err
	}
	time.Sleep(packetTime)
	return t.remove(others)
}

// clear removes all tables, of this process and of former ones.
func (t *familyTable) clear() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.current = nil
	numbers, err := t.numbers()
	if err != nil || len(numbers) == 0 {
		return err
	}
	return t.remove(numbers)
}

// remove removes these tables. That somebody else removes one of them meanwhile is no error.
func (t *familyTable) remove(numbers []int) (err error) {
	for _, number := range numbers {
		err = errors.Join(err, nft.DropTable(t.family.Tables, t.prefix+strconv.Itoa(number)))
	}
	return err
}

func (t *familyTable) name() string { return t.prefix + strconv.Itoa(t.number) }

// numbers are those of the tables that are in the kernel.
func (t *familyTable) numbers() (all []int, err error) {
	conn, err := nft.Open()
	if err != nil {
		return nil, err
	}
	tables, err := conn.ListTablesOfFamily(t.family.Tables)
	if err != nil {
		return nil, err
	}
	for _, table := range tables {
		rest, own := strings.CutPrefix(table.Name, t.prefix)
		if number, err := strconv.Atoi(rest); own && err == nil {
			all = append(all, number)
		}
	}
	return all, nil
}

// made reports whether this process has made a table.
func (t *familyTable) made() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.number > 0
}

// exists reports whether the kernel has a table.
func (t *familyTable) exists() bool {
	numbers, err := t.numbers()
	return err == nil && len(numbers) > 0
}

// intact reports whether the kernel still has what the last apply made. What somebody removed is made again by the next one.
func (t *familyTable) intact() (bool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	rules, err := nft.CountRules(&nftables.Table{Family: t.family.Tables, Name: t.name()})
	if err != nil {
		return false, err
	}
	empty := func(chain string) bool { return rules[chain] == 0 }
	if t.current == nil || empty(forwardChain) || slices.ContainsFunc(chainNames(t.current), empty) {
		t.current = nil
	}
	return t.current != nil, nil
}

// tell makes one transaction.
func (t *familyTable) tell(fill func(*ruleset) error) error {
	conn, err := nft.Open()
	if err != nil {
		return err
	}
	r := &ruleset{conn: conn, table: &nftables.Table{Family: t.family.Tables, Name: t.name()}, family: t.family}
	if err := fill(r); err != nil {
		return err
	}
	return conn.Flush()
}
