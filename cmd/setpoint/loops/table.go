package loops

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/setpoint-io/setpoint/controllers/reconcile/numbers"
	"github.com/setpoint-io/setpoint/server/admin"
)

const (
	// errorRunes is how much of an error a row shows, slowestMax how many slow keys.
	errorRunes = 60
	slowestMax = 2
	// troublesMax is how many failing keys and circles stand below the table.
	troublesMax = 20
)

func printLoops(w io.Writer, report admin.LoopsReport) error {
	if report.Server == "" {
		fmt.Fprintln(w, "no server leads now, so no loop acts")
		return nil
	}
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "LOOP\tQUEUE\tSERVER\tDEPTH\tOLDEST\tFAILING\tRETRIES\tPASSES\tIDLE\tWRITES/MIN\tLAST ERROR\tSLOWEST")
	for _, loop := range troublesFirst(report.Loops) {
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%s\t%d\t%d\t%d\t%d\t%d\t%s\t%s\n", nameOf(loop), loop.Queue, report.Server, loop.Depth,
			ageOf(loop.Oldest, report.At), len(loop.Failing), loop.Retries, loop.Passes, loop.Idle, loop.WritesPerMinute,
			lastError(loop.LastError, report.At), slowestOf(loop.Slowest))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if err := printTroubles(w, report); err != nil {
		return err
	}
	if e := report.Events; e.Lost() > 0 {
		fmt.Fprintf(w, "\nevents: %d sent, %d lost (%d too many of one object, %d no room, %d refused)\n",
			e.Sent, e.Lost(), e.Limited, e.Dropped, e.Refused)
	}
	return nil
}

// nameOf is the loop's, and whether it is paused.
func nameOf(loop numbers.Report) string {
	if loop.Paused {
		return loop.Loop + " (paused)"
	}
	return loop.Loop
}

// troublesFirst sorts loops by whether they are paused, by circles, failing keys and depth; those without are in the order of their names.
func troublesFirst(loops []numbers.Report) []numbers.Report {
	sorted := slices.Clone(loops)
	slices.SortStableFunc(sorted, func(a, b numbers.Report) int {
		return cmp.Or(
			compareBools(b.Paused, a.Paused), cmp.Compare(len(b.Circles), len(a.Circles)),
			cmp.Compare(len(b.Failing), len(a.Failing)), cmp.Compare(b.Depth, a.Depth),
			strings.Compare(a.Loop, b.Loop), strings.Compare(a.Queue, b.Queue),
		)
	})
	return sorted
}

func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// printTroubles lists the keys that fail and the objects that are written in circles.
func printTroubles(w io.Writer, report admin.LoopsReport) error {
	var rows []string
	for _, loop := range troublesFirst(report.Loops) {
		for _, circle := range loop.Circles {
			rows = append(rows, fmt.Sprintf("%s\t%s\t%d\t%s\twrites %s in circles\n",
				loop.Queue, circle.Key, circle.Repeats, untilNext(&circle.Until, report.At), circle.Object))
		}
		for _, key := range loop.Failing {
			rows = append(rows, fmt.Sprintf("%s\t%s\t%d\t%s\t%s\n", loop.Queue, key.Key, key.Tries, untilNext(key.Next, report.At), key.Error))
		}
	}
	if len(rows) == 0 {
		return nil
	}
	more := len(rows) - troublesMax
	rows = rows[:min(len(rows), troublesMax)]
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprint(t, "\nQUEUE\tKEY\tTRIES\tNEXT TRY\tERROR\n", strings.Join(rows, ""))
	if more > 0 {
		fmt.Fprintf(t, "and %d more, see -o json\n", more)
	}
	return t.Flush()
}

func ageOf(since *time.Time, now time.Time) string {
	if since == nil {
		return "-"
	}
	return duration.HumanDuration(now.Sub(*since))
}

// untilNext is how long it takes until the next try.
func untilNext(next *time.Time, now time.Time) string {
	switch {
	case next == nil:
		return "when it changes"
	case !next.After(now):
		return "now"
	}
	return "in " + duration.HumanDuration(next.Sub(now))
}

func lastError(last *numbers.LastError, now time.Time) string {
	if last == nil {
		return "-"
	}
	text := []rune(last.Error)
	if len(text) > errorRunes {
		text = append(text[:errorRunes-1], '…')
	}
	return string(text) + " (" + duration.HumanDuration(now.Sub(last.At)) + " ago)"
}

func slowestOf(keys []numbers.SlowKey) string {
	var shown []string
	for _, key := range keys[:min(len(keys), slowestMax)] {
		if key.Took < time.Millisecond {
			break
		}
		shown = append(shown, cmp.Or(key.Key, "all")+" "+strconv.FormatInt(key.Took.Milliseconds(), 10)+"ms")
	}
	return cmp.Or(strings.Join(shown, ", "), "-")
}
