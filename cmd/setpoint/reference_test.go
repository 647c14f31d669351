package main

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/setpoint-io/setpoint"
)

const referenceFile = "../../docs/reference.md"

const referenceHead = `# Commands and flags

<!-- Generated from the commands: go test ./cmd/setpoint -run TestReference -update -->

Every flag of the commands below is also an environment variable, and a line of a YAML file that
` + "`--config`" + ` names: ` + "`--data-dir /srv/a`, `SETPOINT_DATA_DIR=/srv/a` and `data-dir: /srv/a`" + ` say the same.
The command line wins over the environment, and the environment over the file. A flag of the file that the
command does not have is an error.

| exit code | meaning |
|---|---|
| 0 | done |
| 1 | failed while it ran |
| 2 | wrong usage: an unknown command or flag, or a value that cannot be |
| 65 | ` + "`setpoint server`" + ` alone: a start would find the same again, until somebody decides [what comes of the server's data](operations/install.md#install-on-three-machines) |

` + "`setpoint kubectl` ends as kubectl does." + `

Every command but ` + "`kubectl` and `completion`" + ` has these flags, which the tables below leave out:

| flag | default | meaning |
|---|---|---|
| ` + "`--config`" + ` | | YAML file with values for flags, by their names |
| ` + "`--log-level`" + ` | ` + "`info`" + ` | ` + "`debug`, `info`, `warn` or `error`" + `; logs go to standard error |

These variables have no flag: ` + "`KUBECONFIG`" + ` names the cluster for ` + "`setpoint kubectl`" + ` and for the commands with a
` + "`--kubeconfig`" + ` flag; without it they find the cluster of this machine. ` + "`NO_COLOR`" + ` and ` + "`TERM=dumb`" + ` turn colour and
progress off. ` + "`GOGC`" + ` replaces the garbage collection that Setpoint sets for itself.
`

// ofUser are the commands whose data directory depends on who runs them.
var ofUser = map[string]bool{"setpoint dev": true, "setpoint reset": true}

// ofAll are the flags of every command, which the head of the page describes.
var ofAll = []string{"config", "log-level", "help"}

// defaultInText is where the text of a flag says what its default is.
var defaultInText = regexp.MustCompile(` \(default:? ([^()]*)\)$`)

// TestReference keeps docs/reference.md equal to what the commands say of themselves.
func TestReference(t *testing.T) {
	root := newRoot()
	root.InitDefaultHelpCmd()
	var b strings.Builder
	b.WriteString(referenceHead)
	for _, cmd := range root.Commands() {
		describe(&b, cmd)
	}
	if *update {
		if err := os.WriteFile(referenceFile, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	shown, err := os.ReadFile(referenceFile)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(shown), b.String()); diff != "" {
		t.Errorf("docs/reference.md says something else than the commands: go test ./cmd/setpoint -run TestReference -update\n%s", diff)
	}
}

// describe writes one command and those below it.
func describe(b *strings.Builder, cmd *cobra.Command) {
	if cmd.Hidden || cmd.Name() == "help" {
		return
	}
	fmt.Fprintf(b, "\n##%s %s\n\n", strings.Repeat("#", strings.Count(cmd.CommandPath(), " ")-1), cmd.CommandPath())
	if cmd.Name() == "completion" { // cobra's own text is one page for each shell
		fmt.Fprintf(b, "%s: `%s --help` says how to install it.\n", cmd.Short, cmd.CommandPath())
		return
	}
	text := cmd.Long
	if text == "" {
		text = cmd.Short
	}
	b.WriteString(inMarkdown(strings.TrimSpace(text)) + "\n")
	if !cmd.HasSubCommands() || cmd.Example != "" { // a group alone does nothing
		describeUse(b, cmd)
	}
	for _, child := range cmd.Commands() {
		describe(b, child)
	}
}

func describeUse(b *strings.Builder, cmd *cobra.Command) {
	fmt.Fprintf(b, "\n```\n%s\n", cmd.UseLine())
	if cmd.Example != "" {
		fmt.Fprintf(b, "\n%s\n", strings.TrimRight(cmd.Example, "\n"))
	}
	b.WriteString("```\n")
	writeFlags(b, cmd)
}

func writeFlags(b *strings.Builder, cmd *cobra.Command) {
	var rows []string
	cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden || slices.Contains(ofAll, f.Name) {
			return
		}
		name := "`--" + f.Name + "`"
		if f.Shorthand != "" {
			name = "`-" + f.Shorthand + "`, " + name
		}
		text, byDefault := defaultOf(cmd, f)
		rows = append(rows, fmt.Sprintf("| %s | %s | %s |", name, byDefault, inMarkdown(text)))
	})
	if len(rows) > 0 {
		fmt.Fprintf(b, "\n| flag | default | meaning |\n|---|---|---|\n%s\n", strings.Join(rows, "\n"))
	}
}

// defaultOf is the text of a flag without its default, and the default.
func defaultOf(cmd *cobra.Command, f *pflag.Flag) (text, byDefault string) {
	if found := defaultInText.FindStringSubmatch(f.Usage); found != nil {
		return strings.TrimSuffix(f.Usage, found[0]), inMarkdown(found[1])
	}
	if ofUser[cmd.CommandPath()] && f.DefValue == defaultDataDir() {
		return f.Usage, "`" + setpoint.DefaultDataDir + "`; without root `~/.local/share/setpoint`"
	}
	switch f.DefValue {
	case "", "[]", "false":
		return f.Usage, ""
	}
	return f.Usage, "`" + f.DefValue + "`"
}

// inMarkdown keeps what Markdown would take for itself.
func inMarkdown(text string) string {
	return strings.NewReplacer("<", `\<`, "|", `\|`, "*", `\*`).Replace(text)
}
