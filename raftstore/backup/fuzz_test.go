package backup_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/raftstore/backup"
)

// FuzzLoad: an archive is read whole, or refused as damaged or newer.
func FuzzLoad(f *testing.F) {
	var out bytes.Buffer
	if _, err := backup.Write(&out, filled(3, 20).Root(), backup.Header{Term: 3, Time: time.UnixMilli(1_700_000_000_123)}); err != nil {
		f.Fatal(err)
	}
	f.Add(out.Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		_, checkErr := backup.Check(bytes.NewReader(data), nil)
		_, _, err := backup.Load(bytes.NewReader(data))
		if err != nil && !errors.Is(err, backup.ErrDamaged) && !errors.Is(err, backup.ErrNewer) {
			t.Error(err)
		}
		if err == nil && checkErr != nil {
			t.Error("loaded, but the check says", checkErr)
		}
	})
}
