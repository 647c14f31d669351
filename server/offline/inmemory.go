package offline

import (
	"context"
	"io"
	"time"

	"github.com/setpoint-io/setpoint/internal/trust"
	"github.com/setpoint-io/setpoint/raftstore"
	"github.com/setpoint-io/setpoint/raftstore/record"
)

// Rewrite makes of a stored value, which begins with its encoding byte, what a copy holds in its place; nil: the copy lacks it.
type Rewrite func(key, uid string, value []byte) []byte

// RestoreInMemory makes of an archive the memory of a server that is alone. It is the beginning of another cluster: the one that the
// archive is of will not know it, nor its certificates.
func RestoreInMemory(ctx context.Context, archive io.Reader, self trust.Server, rewrite Rewrite) (*raftstore.Memory, Restored, error) {
	memory := raftstore.NewMemory(true)
	config := raftstore.RestoreConfig{
		Disk: raftstore.MemoryDisk(memory), Name: self.Name, Servers: []raftstore.Server{{ID: self.Name, Address: self.Endpoint}},
		Time: time.Now(), NewCluster: true,
	}
	if rewrite != nil {
		config.Rewrite = rewrite.record
	}
	restored, err := raftstore.Restore(ctx, archive, config)
	return memory, restored, err
}

func (f Rewrite) record(r *record.Record) *record.Record {
	value := f(r.Key, r.UID, r.Value)
	switch {
	case value == nil:
		return nil
	case len(value) == len(r.Value) && (len(value) == 0 || &value[0] == &r.Value[0]):
		return r
	}
	return &record.Record{Key: r.Key, UID: r.UID, Value: value, CreateRevision: r.CreateRevision, ModRevision: r.ModRevision}
}
