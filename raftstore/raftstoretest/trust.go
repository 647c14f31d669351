package raftstoretest

import (
	"io/fs"
	"slices"
	"sync"

	"github.com/setpoint-io/setpoint/raftstore/founded"
)

// TrustFolder keeps a record of the founding in memory. The zero value has none; several servers may share one.
type TrustFolder struct {
	mu     sync.Mutex
	record []byte
	// fail is what writing fails with.
	fail error
}

var _ founded.Keeper = &TrustFolder{}

// Load implements founded.Keeper.
func (f *TrustFolder) Load() ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.record == nil {
		return nil, fs.ErrNotExist
	}
	return slices.Clone(f.record), nil
}

// Save implements founded.Keeper.
func (f *TrustFolder) Save(record []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fail == nil {
		f.record = slices.Clone(record)
	}
	return f.fail
}

// String implements founded.Keeper.
func (f *TrustFolder) String() string { return "the trust folder" }

// Fail makes writing fail, or with nil succeed again.
func (f *TrustFolder) Fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fail = err
}

// Forget removes the record.
func (f *TrustFolder) Forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.record = nil
}

// Trust is the trust folder of a server.
func (c *Cluster) Trust(i int) *TrustFolder { return &c.members[i].trust }
