package backups

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/setpoint-io/setpoint/raftstore/backup"
)

// Print writes a table for people.
func Print(out io.Writer, list []Entry) error {
	t := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "FILE\tMADE\tREVISION\tOBJECTS\tSIZE")
	for _, e := range list {
		size := mebibytes(e.Bytes)
		if e.Problem != "" {
			fmt.Fprintf(t, "%s\tcannot be read: %s\t\t\t%s\n", e.File, e.Problem, size)
			continue
		}
		if e.Encrypted {
			fmt.Fprintf(t, "%s\t%s\tencrypted\t\t%s\n", e.File, e.Made.Format(time.RFC3339), size)
			continue
		}
		fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%s\n", e.File, e.Made.Format(time.RFC3339), e.Revision, e.Objects, size)
	}
	return t.Flush()
}

// Problems is an error if a file of a list cannot be read.
func Problems(list []Entry) error {
	bad := 0
	for _, e := range list {
		if e.Problem != "" {
			bad++
		}
	}
	if bad == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d backups cannot be read", bad, len(list))
}

// View is what a backup holds, for people and scripts.
type View struct {
	File         string    `json:"file"`
	ClusterID    string    `json:"clusterID"`
	Time         time.Time `json:"time"`
	Revision     uint64    `json:"revision"`
	FeatureLevel uint64    `json:"featureLevel"`
	Objects      int64     `json:"objects"`
	Bytes        int64     `json:"bytes"`
	StateHash    string    `json:"stateHash"`
}

// ViewOf is the view of a file that was read.
func ViewOf(file string, r backup.Report) View {
	return View{
		File: file, ClusterID: r.ClusterID, Time: r.Time, Revision: r.Revision, FeatureLevel: r.FeatureLevel,
		Objects: r.Objects, Bytes: r.ArchiveBytes, StateHash: fmt.Sprintf("%x", r.StateHash),
	}
}

// Print writes a table for people.
func (v View) Print(out io.Writer) error {
	t := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "FILE\tREVISION\tOBJECTS\tSIZE\tMADE\tSTATE HASH")
	fmt.Fprintf(t, "%s\t%d\t%d\t%s\t%s\t%s\n", v.File, v.Revision, v.Objects, mebibytes(v.Bytes), v.Time.Format(time.RFC3339), v.StateHash)
	return t.Flush()
}

func mebibytes(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }
