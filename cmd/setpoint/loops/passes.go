package loops

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/setpoint-io/setpoint/controllers/reconcile/numbers"
)

// passRow is the form of a row of passes, which come one by one.
const passRow = "%-12s  %-30s  %-28s  %-7s  %-8s  %s\n"

// remembered prints the passes about the object that the server remembers.
func (o *options) remembered(cmd *cobra.Command) error {
	from := uint64(0)
	report, err := o.fetch(cmd.Context(), &from)
	if err != nil {
		return err
	}
	chosen := o.chosen(report.Passes)
	return o.Print(cmd.OutOrStdout(), o.output, chosen, func(w io.Writer) error {
		w = o.Escaped(w)
		printHead(w)
		for i := range chosen {
			printPass(w, &chosen[i])
		}
		return nil
	})
}

// chosen are the passes that were asked for.
func (o *options) chosen(all []numbers.PassReport) []numbers.PassReport {
	chosen := []numbers.PassReport{}
	for i := range all {
		if (o.idle || !all[i].Idle()) && (o.object == "" || concerns(&all[i], o.object)) {
			chosen = append(chosen, all[i])
		}
	}
	return chosen
}

// concerns reports whether a pass was about an object, wrote it, or acted because of it.
func concerns(pass *numbers.PassReport, object string) bool {
	if isNamed(pass.Key, object) {
		return true
	}
	for _, act := range pass.Acts {
		_, written, _ := strings.Cut(act.Object, " ")  // such as "pods default/web"
		_, because, _ := strings.Cut(act.Because, " ") // such as "Deployment default/web, version 7"
		because, _, _ = strings.Cut(because, ",")
		written, _, _ = strings.Cut(written, " ") // of such as "pods/binding default/web to node-1"
		if isNamed(written, object) || isNamed(because, object) {
			return true
		}
	}
	return false
}

// isNamed compares NAMESPACE/NAME; a name alone is that in every namespace.
func isNamed(name, wanted string) bool {
	return name == wanted || !strings.Contains(wanted, "/") && strings.HasSuffix(name, "/"+wanted)
}

func printHead(w io.Writer) {
	fmt.Fprintf(w, passRow, "TIME", "LOOP", "OBJECT", "WANTED", "OBSERVED", "DID")
}

// printPass prints a row for each act of a pass, and how it failed.
func printPass(w io.Writer, pass *numbers.PassReport) {
	at, key := pass.At.Local().Format("15:04:05.000"), cmp.Or(pass.Key, "all")
	row := func(wanted, observed, did string) {
		fmt.Fprintf(w, passRow, at, pass.Loop, key, cmp.Or(wanted, "-"), cmp.Or(observed, "-"), did)
	}
	for _, act := range pass.Acts {
		row(act.Wanted, act.Observed, act.Did)
	}
	if more := pass.Writes - len(pass.Acts); more > 0 && len(pass.Acts) == numbers.ActsMax {
		row("", "", fmt.Sprintf("and %d more writes", more))
	}
	if pass.Error != "" {
		row("", "", "failed: "+pass.Error)
	}
	if pass.Idle() {
		row("", "", "found nothing to do")
	}
}
