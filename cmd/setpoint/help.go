package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// groupAnnotation is where a flag keeps the heading below which --help shows it. Without one it
// is essential, and shown first.
const groupAnnotation = "setpoint.io/group"

// ofEveryCommand is the heading of the flags that nobody looks for.
const ofEveryCommand = "Flags of every command"

// commandGroups are the headings of `setpoint --help`, in order. Each command is below one of them, which a test demands.
var commandGroups = []struct {
	title    string
	commands []string
}{
	{"Run a cluster", []string{"dev", "install", "uninstall", "server", "agent", "cri"}},
	{"Use it", []string{"kubectl", "kubeconfig", "why", "what-if", "history", "diff", "at", "undelete", "loops", "ui"}},
	{"Look after it", []string{"cluster", "node", "net", "images", "token", "revoke", "rotate", "backup", "upgrade", "reset"}},
	{"Test operators", []string{"envtest-assets", "testserver"}},
	{"About setpoint", []string{"version", "completion", "man", "help"}},
}

// inGroup puts the flags that add makes below a heading.
func inGroup(flags *pflag.FlagSet, title string, add func()) {
	before := map[string]bool{}
	flags.VisitAll(func(f *pflag.Flag) { before[f.Name] = true })
	add()
	flags.VisitAll(func(f *pflag.Flag) {
		if !before[f.Name] {
			must(flags.SetAnnotation(f.Name, groupAnnotation, []string{title}))
		}
	})
}

// showHelp prints what a command does, with its most important flags first.
func showHelp(cmd *cobra.Command, _ []string) {
	w := cmd.OutOrStdout()
	about := cmd.Long
	if about == "" {
		about = cmd.Short
	}
	fmt.Fprintf(w, "%s\n\n", strings.TrimSpace(about))
	printUsage(w, cmd)
}

func printUsage(w io.Writer, cmd *cobra.Command) {
	heading := func(title string) { fmt.Fprintf(w, "%s\n", paint(w, bold, title+":")) }
	heading("Usage")
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(w, "  %s [command]\n", cmd.CommandPath())
	} else {
		fmt.Fprintf(w, "  %s\n", cmd.UseLine())
	}
	if cmd.HasExample() {
		fmt.Fprintln(w)
		heading("Examples")
		fmt.Fprintln(w, cmd.Example)
	}
	printCommands(w, cmd, heading)
	fromElsewhere := printFlags(w, cmd, heading)
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(w, "\nUse '%s [command] --help' for more about a command.\n", cmd.CommandPath())
	}
	if fromElsewhere {
		fmt.Fprintln(
			w,
			"\nEach flag is also an environment variable (--data-dir is SETPOINT_DATA_DIR) and a line of the file that --config names\n"+
				"(data-dir: /srv/setpoint). The command line wins over the environment, and that over the file.",
		)
	}
}

// printCommands lists what is below a command; all names in one column.
func printCommands(w io.Writer, cmd *cobra.Command, heading func(string)) {
	width := 0
	for _, child := range cmd.Commands() {
		width = max(width, len(child.Name()))
	}
	list := func(title string, children []*cobra.Command) {
		if len(children) == 0 {
			return
		}
		fmt.Fprintln(w)
		heading(title)
		for _, child := range children {
			fmt.Fprintf(w, "  %-*s   %s\n", width, child.Name(), child.Short)
		}
	}
	children := slices.DeleteFunc(slices.Clone(cmd.Commands()), func(child *cobra.Command) bool {
		return !child.IsAvailableCommand() && child.Name() != "help"
	})
	if cmd.HasParent() {
		list("Commands", children)
		return
	}
	for _, g := range commandGroups {
		list(g.title, inOrder(children, g.commands))
	}
}

func inOrder(commands []*cobra.Command, names []string) (ordered []*cobra.Command) {
	for _, name := range names {
		i := slices.IndexFunc(commands, func(c *cobra.Command) bool { return c.Name() == name })
		if i >= 0 {
			ordered = append(ordered, commands[i])
		}
	}
	return ordered
}

// printFlags lists flags below their headings, in the order in which the code names them. It
// reports whether they can come from elsewhere than the command line.
func printFlags(w io.Writer, cmd *cobra.Command, heading func(string)) bool {
	groups := map[string]*pflag.FlagSet{}
	var titles []string
	cmd.Flags().SortFlags = false
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		title := groupOf(cmd, f)
		if groups[title] == nil {
			groups[title] = pflag.NewFlagSet(title, pflag.ContinueOnError)
			groups[title].SortFlags = false
			titles = append(titles, title)
		}
		groups[title].AddFlag(f)
	})
	slices.SortStableFunc(titles, func(a, b string) int { return rank(a) - rank(b) })
	for _, title := range titles {
		if groups[title].HasAvailableFlags() {
			fmt.Fprintln(w)
			heading(title)
			fmt.Fprint(w, groups[title].FlagUsagesWrapped(columns(w)))
		}
	}
	return cmd.Flags().Lookup("config") != nil
}

const essential = "Flags"

func groupOf(cmd *cobra.Command, f *pflag.Flag) string {
	if title := f.Annotations[groupAnnotation]; len(title) == 1 {
		return title[0]
	}
	if f.Name == "help" && cmd.HasParent() {
		return ofEveryCommand
	}
	return essential
}

// rank puts the essential flags first and those of every command last.
func rank(title string) int {
	switch title {
	case essential:
		return 0
	case ofEveryCommand:
		return 2
	default:
		return 1
	}
}
