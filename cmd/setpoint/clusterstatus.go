package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/setpoint-io/setpoint/cmd/setpoint/clusterstatus"
	"github.com/setpoint-io/setpoint/internal/trust"
	"github.com/setpoint-io/setpoint/server/admin"
)

// statusTimeout bounds how long the servers, asked at once, may take to tell their status.
const statusTimeout = clusterstatus.Timeout

var (
	errNobodyAnswers = errors.New("no server answers")
	errPersonNeeded  = errors.New("this cluster needs somebody: the last line says why")
)

func newClusterStatus() *cobra.Command {
	var kubeconfig, output string
	cmd := &cobra.Command{Use: "status", Short: "Show replicas, leader, disk, gossip and who runs the control loops",
		Long: "Show the members of the control plane, whichever of them the kubeconfig names, and at the end whether somebody is needed:\n" +
			"a member that does not answer, no leader, a disk that is full, a certificate that ends. The exit code is 1 then."}
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", kubeconfigUsage)
	cmd.Flags().StringVarP(&output, "output", "o", "table", outputUsage)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		configs, err := contexts(kubeconfig)
		if err != nil {
			return err
		}
		report := clusterstatus.Fetch(cmd.Context(), configs)
		if err := printStatus(cmd.OutOrStdout(), report, output); err != nil {
			return err
		}
		switch {
		case report.Silent():
			return errNobodyAnswers
		case report.Verdict.PersonNeeded:
			return errPersonNeeded
		}
		return nil
	}
	return withSources(cmd)
}

func printStatus(w io.Writer, report clusterstatus.Report, output string) error {
	return printAs(w, output, report, func(w io.Writer) error {
		if !wantsColor(w) {
			return printStatusTable(w, report)
		}
		var plain strings.Builder
		if err := printStatusTable(&plain, report); err != nil {
			return err
		}
		_, err := io.WriteString(w, colored(plain.String()))
		return err
	})
}

// remarkable are the words of the table that have a colour: red is lost, yellow is to be looked at.
var remarkable = regexp.MustCompile(`(?m)\b(unreachable|no leader|dead)\b|\b(absent|low|full)\b|\bleader\b|^[A-Z].*$`)

// colored colours a table when its columns are laid out.
func colored(table string) string {
	return remarkable.ReplaceAllStringFunc(table, func(word string) string {
		switch word {
		case "unreachable", "no leader", "dead":
			return red + word + plain
		case "absent", "low", "full":
			return yellow + word + plain
		case "leader":
			return green + word + plain
		}
		return bold + word + plain
	})
}

func printStatusTable(w io.Writer, report clusterstatus.Report) error {
	reports := report.Servers
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "SERVER\tROLE\tTERM\tREVISION\tLOG\tFSYNC P99\tFREE")
	var any *admin.ServerStatus
	for _, r := range reports {
		if r.Status == nil {
			fmt.Fprintf(t, "%s\tunreachable: %s\n", r.Name, r.Error)
			continue
		}
		any = r.Status
		fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%.1f MiB\t%s\t%s\n", r.Name, role(r.Status), r.Status.Term, r.Status.Revision,
			float64(r.Status.LogBytes)/(1<<20), r.Status.SyncP99.Round(10*time.Microsecond), room(r.Status))
	}
	printEncryption(t, reports)
	printBackups(t, reports, time.Now())
	if any != nil {
		printActors(t, any)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	printExpiry(w, reports, time.Now())
	_, err := fmt.Fprintf(w, "\n%s\n", report.Verdict.Text)
	return err
}

// printExpiry warns of certificates that end soon. Servers renew their own and the
// administrator's long before, so something keeps them from it.
func printExpiry(w io.Writer, reports []clusterstatus.Server, now time.Time) {
	for _, r := range reports {
		if r.Status == nil {
			continue
		}
		for _, c := range r.Status.Certificates {
			if c.Expires.Sub(now) < trust.ExpiryWarning {
				fmt.Fprintf(
					w,
					"\nWARNING: %s: the certificate of the %s ends at %s: see the server's log\n",
					r.Name,
					c.Name,
					c.Expires.Format(time.RFC3339),
				)
			}
		}
	}
}

// printBackups says when the servers with a schedule made their last one.
func printBackups(t io.Writer, reports []clusterstatus.Server, now time.Time) {
	title := "\nBACKUPS OF\tLAST\tSIZE\tNEXT\n"
	for _, r := range reports {
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

// printEncryption says how far the servers are from what is to be encrypted; nothing, if all is well.
func printEncryption(t io.Writer, reports []clusterstatus.Server) {
	for _, r := range reports {
		if r.Status == nil || r.Status.Encryption == nil {
			continue
		}
		e, wrong := r.Status.Encryption, r.Status.Encryption.Problem
		if e.Waiting {
			wrong = "nothing is encrypted until all servers run a release that can read it"
		}
		if e.ToRewrite > 0 || e.Unreadable > 0 || e.Waiting {
			fmt.Fprintf(
				t,
				"\nENCRYPTION\tOBJECTS\tTO REWRITE\tUNREADABLE\n%s\t%d\t%d\t%d\t%s\n",
				r.Name,
				e.Objects,
				e.ToRewrite,
				e.Unreadable,
				wrong,
			)
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
