package storage

import (
	"slices"
	"strconv"
	"testing"

	"github.com/setpoint-io/setpoint/raftstore/record"
)

// TestListsReadAheadInOrder: whole batches and what is left, each record once, and none after the reader has enough. The records
// cannot be decoded, which nobody is told before their turn comes.
func TestListsReadAheadInOrder(t *testing.T) {
	table := *newTestStore(0).Table(configMaps)
	table.dynamic = &Dynamic{}
	for _, limit := range []int64{0, 5, convertBatch} {
		for _, n := range []int{0, 1, 5, 6, 7, convertBatch, 2*convertBatch + 3} {
			var records []*record.Record
			for i := range n {
				records = append(records, &record.Record{Key: strconv.Itoa(i), Value: []byte{255}})
			}
			if got := slices.Collect(table.ahead(slices.Values(records), limit)); !slices.Equal(got, records) {
				t.Errorf("limit %d: %d of %d records", limit, len(got), n)
			}
			read := 0
			for range table.ahead(slices.Values(records), limit) {
				if read++; read == 3 {
					break
				}
			}
			if read != min(n, 3) {
				t.Errorf("limit %d: %d of %d records were read", limit, read, n)
			}
		}
	}
}
