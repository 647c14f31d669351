package clusterstatus

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/setpoint-io/setpoint/internal/rotation"
	"github.com/setpoint-io/setpoint/server/admin"
)

// Print writes a table for people.
func (r *Report) Print(w io.Writer) error {
	servers := r.Servers
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "SERVER\tROLE\tTERM\tREVISION\tLOG\tFSYNC P99\tFREE")
	var any *admin.ServerStatus
	for _, s := range servers {
		if s.Status == nil {
			fmt.Fprintf(t, "%s\t%s: %s\n", s.Name, s.noStatus(), s.Error)
			continue
		}
		any = s.Status
		fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%s\t%s\t%s\n", s.Name, role(s.Status), s.Status.Term, s.Status.Revision,
			mebibytes(s.Status.LogBytes), s.Status.SyncP99.Round(10*time.Microsecond), room(s.Status))
	}
	printEncryption(t, servers)
	printBackups(t, servers, time.Now())
	printHistories(t, servers, time.Now())
	if any != nil {
		printActors(t, any)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	printRotations(w, servers, time.Now())
	printExpiry(w, servers, time.Now())
	_, err := fmt.Fprintf(w, "\n%s\n", r.Verdict.Text)
	return err
}

// noStatus says in a word why there is no status.
func (s *Server) noStatus() string {
	if s.Refused != 0 {
		return "not told"
	}
	return "unreachable"
}

// printExpiry warns of certificates that end soon. Servers and nodes renew their own and the administrator's long before, so something
// keeps them from it.
func printExpiry(w io.Writer, servers []Server, now time.Time) {
	for _, e := range endings(servers, now) {
		fmt.Fprintf(w, "\nWARNING: %s %s at %s: %s\n", e.what, e.verb(now), e.Expires.Format(time.RFC3339), e.remedy())
	}
}

// printBackups says when the servers with a schedule made their last one.
func printBackups(t io.Writer, servers []Server, now time.Time) {
	title := "\nBACKUPS OF\tLAST\tSIZE\tNEXT\n"
	for _, r := range servers {
		if r.Status == nil || r.Status.Backups == nil {
			continue
		}
		b, last := r.Status.Backups, "none"
		if !b.Last.IsZero() {
			last = duration.HumanDuration(now.Sub(b.Last)) + " ago"
		}
		fmt.Fprintf(t, "%s%s\t%s\t%s\t%s\n", title, r.Name, last, mebibytes(b.Bytes), b.Due.Format(time.RFC3339))
		title = ""
	}
}

// printHistories says how far back the servers' histories reach, within which limits, and what is wrong with them.
func printHistories(t io.Writer, servers []Server, now time.Time) {
	title := "\nHISTORY OF\tSINCE\tCHANGES\tSIZE\tLIMITS\n"
	for _, r := range servers {
		if r.Status == nil || r.Status.History == nil {
			continue
		}
		h, since, wrong := r.Status.History, "-", r.Status.History.Trouble
		if !h.Since.IsZero() {
			since = duration.HumanDuration(now.Sub(h.Since)) + " ago"
		}
		if wrong == "" && len(h.Holes) > 0 {
			last := h.Holes[len(h.Holes)-1]
			wrong = fmt.Sprintf("%d missing parts, the last after revision %d up to %d", len(h.Holes), last.After, last.Until)
		}
		fmt.Fprintf(t, "%s%s\t%s\t%d\t%s\t%s, %s\t%s\n", title, r.Name, since, h.Changes, mebibytes(h.Bytes), duration.HumanDuration(h.Retention),
			mebibytes(h.SizeBytes), wrong)
		title = ""
	}
}

// printRotations says how far the rotations of keys are, and who is waited for.
func printRotations(w io.Writer, servers []Server, now time.Time) {
	members, newest := []rotation.Member(nil), map[rotation.Kind]rotation.State{}
	for _, r := range servers {
		member := rotation.Member{Name: r.Name, Silent: r.Error}
		if r.Status != nil {
			member = rotation.Member{Name: r.Name, Held: r.Status.Held}
			for _, s := range r.Status.Rotations {
				if s.Since.After(newest[s.Kind].Since) {
					newest[s.Kind] = s
				}
			}
		}
		members = append(members, member)
	}
	for _, kind := range rotation.Kinds() {
		if s, ok := newest[kind]; ok {
			fmt.Fprintf(w, "\n%s\n", rotation.Progress{State: s, Step: s.Plan(members, now)}.Line())
		}
	}
}

// printEncryption says how far the servers are from what is to be encrypted; nothing, if all is well.
func printEncryption(t io.Writer, servers []Server) {
	for _, r := range servers {
		if r.Status == nil || r.Status.Encryption == nil {
			continue
		}
		e, wrong := r.Status.Encryption, r.Status.Encryption.Problem
		if e.Waiting {
			wrong = "nothing is encrypted until all servers run a release that can read it"
		}
		if e.ToRewrite > 0 || e.Unreadable > 0 || e.Waiting {
			fmt.Fprintf(t, "\nENCRYPTION\tOBJECTS\tTO REWRITE\tUNREADABLE\n%s\t%d\t%d\t%d\t%s\n",
				r.Name, e.Objects, e.ToRewrite, e.Unreadable, wrong)
		}
	}
}

// room is the free space of a server's disk, and whether that or its memory is too little.
func room(s *admin.ServerStatus) string {
	free := fmt.Sprintf("%.1f GiB", float64(s.FreeBytes)/(1<<30))
	if s.FullDisk {
		return fmt.Sprintf("%s (full: it falls behind, and needs %d MiB)", free, s.HeadroomBytes>>20)
	}
	if s.LowSpace {
		return fmt.Sprintf("%s (low: it needs %d MiB)", free, s.HeadroomBytes>>20)
	}
	if s.ObjectsLimitBytes > 0 && s.ObjectsBytes >= s.ObjectsLimitBytes {
		return fmt.Sprintf("%s; objects take %d MiB and may take %d", free, s.ObjectsBytes>>20, s.ObjectsLimitBytes>>20)
	}
	return free
}

func role(s *admin.ServerStatus) string {
	switch s.Leader {
	case s.Name:
		return "leader"
	case "":
		return "no leader"
	default:
		return "follower"
	}
}

func printActors(t io.Writer, s *admin.ServerStatus) {
	fmt.Fprintln(t, "\nCONTROL LOOP\tSERVER\tSINCE TERM")
	for _, name := range slices.Sorted(maps.Keys(s.Controllers)) {
		server, term, _ := strings.Cut(s.Controllers[name], "_") // the Lease's holder: server and term
		fmt.Fprintf(t, "%s\t%s\t%s\n", name, server, cmp.Or(term, "-"))
	}
	if len(s.Gossip) == 0 {
		return
	}
	fmt.Fprintln(t, "\nGOSSIP MEMBER\tROLE\tSTATE")
	for _, m := range s.Gossip {
		fmt.Fprintf(t, "%s\t%s\t%s\n", m.Name, m.Role, m.State)
	}
}

func mebibytes(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }
