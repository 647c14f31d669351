package man

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// marks are what Markdown, of which the pages are made, takes for more than text.
var marks = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `_`, `\_`, `<`, `\<`, `#`, `\#`)

// asMarkdown has what a command and all below it say of themselves come out of Markdown as it is. Their examples stay: they are shown as
// they are. Commands share flags, so those that are done are remembered.
func asMarkdown(cmd *cobra.Command, done map[*pflag.Flag]bool) {
	cmd.Short, cmd.Long = marks.Replace(cmd.Short), text(cmd.Long)
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if !done[f] {
			done[f], f.Usage = true, marks.Replace(f.Usage)
		}
	})
	for _, child := range cmd.Commands() {
		asMarkdown(child, done)
	}
}

// text has lines that begin with a space kept as they are, with all the others as paragraphs.
func text(long string) string {
	var b strings.Builder
	asIs := false
	for line := range strings.SplitSeq(long, "\n") {
		indented := strings.HasPrefix(line, " ")
		if indented != asIs {
			b.WriteByte('\n')
		}
		if asIs = indented; asIs {
			b.WriteString("    " + line + "\n")
		} else {
			b.WriteString(marks.Replace(line) + "\n")
		}
	}
	return b.String()
}
