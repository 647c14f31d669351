package loops

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/setpoint-io/setpoint/server/admin"
)

// watchInterval is the time between two questions; a server remembers the last 1,000 passes.
const watchInterval = 500 * time.Millisecond

var errWatchOutput = errors.New("-w prints a table, or with -o json one pass a line")

// watcher follows the passes on whichever server the loops act.
type watcher struct {
	*options
	cmd    *cobra.Command
	server string
	term   uint64
	next   uint64
	silent bool // no server answered the last time
}

// follow prints passes until the command is interrupted.
func (o *options) follow(cmd *cobra.Command) error {
	if o.output == "yaml" {
		return o.Mistake(errWatchOutput)
	}
	from := admin.OfNoPass
	report, err := o.fetch(cmd.Context(), &from)
	if err != nil {
		return err
	}
	w := &watcher{options: o, cmd: cmd, server: report.Server, term: report.Term, next: report.Next}
	if o.output == "table" {
		printHead(cmd.OutOrStdout())
	}
	ticker := time.NewTicker(watchInterval)
	defer ticker.Stop()
	for {
		select {
		case <-cmd.Context().Done():
			return cmd.Context().Err()
		case <-ticker.C:
		}
		if err := w.more(); err != nil {
			return err
		}
	}
}

// more asks for what has ended since, and prints it. It fails only if nobody reads any more.
func (w *watcher) more() error {
	from := w.next
	report, err := w.fetch(w.cmd.Context(), &from)
	if refused := (*admin.Refusal)(nil); errors.As(err, &refused) && refused.StatusCode < http.StatusInternalServerError {
		return err // others pass: such as that of a follower whose leader has just ended
	}
	if err != nil || report.Server == "" {
		w.say(err)
		return nil
	}
	w.silent = false
	if report.Server != w.server || report.Term != w.term {
		return w.moved(&report)
	}
	w.next = report.Next
	if report.Missed > 0 {
		w.note(fmt.Sprintf("%d passes were too many to show", report.Missed))
	}
	return w.print(&report)
}

// moved goes on with a new leader: with all that it remembers, since the clocks of two servers do not tell what is new.
func (w *watcher) moved(report *admin.LoopsReport) error {
	if report.Server != w.server || report.Next < w.next { // other numbers: of another server, or since its start
		w.next = 0
	}
	w.server, w.term = report.Server, report.Term
	w.note(fmt.Sprintf("the loops act on %s now, in term %d: here is all that it remembers and you may not have seen", w.server, w.term))
	return nil // the next look takes them
}

func (w *watcher) print(report *admin.LoopsReport) error {
	out := w.Escaped(w.cmd.OutOrStdout())
	chosen := w.chosen(report.Passes)
	for i := range chosen {
		if w.output == "table" {
			printPass(out, &chosen[i])
			continue
		}
		if err := json.NewEncoder(w.cmd.OutOrStdout()).Encode(&chosen[i]); err != nil {
			return err
		}
	}
	return nil
}

// say tells once that nobody answers, or leads.
func (w *watcher) say(err error) {
	if w.silent || w.cmd.Context().Err() != nil {
		return
	}
	w.silent = true
	if err == nil {
		w.note("no server leads now, so no loop acts")
		return
	}
	w.note(err.Error() + ". Trying again")
}

// note tells people what is no pass.
func (w *watcher) note(text string) { fmt.Fprintln(w.Escaped(w.cmd.ErrOrStderr()), text) }
