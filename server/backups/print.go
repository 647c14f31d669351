package backups

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// Print writes a table for people.
func Print(out io.Writer, list []Entry) error {
	t := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "FILE\tMADE\tREVISION\tOBJECTS\tSIZE")
	for _, e := range list {
		size := fmt.Sprintf("%.1f MiB", float64(e.Bytes)/(1<<20))
		if e.Problem != "" {
			fmt.Fprintf(t, "%s\tcannot be read: %s\t\t\t%s\n", e.File, e.Problem, size)
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
