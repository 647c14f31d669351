package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	kubectlcmd "k8s.io/kubectl/pkg/cmd"
)

const (
	// prefixMin is how many letters are enough to mean all names that begin with them.
	prefixMin = 3
	// suggestionsMax is how many names a mistake is answered with.
	suggestionsMax = 3
)

// suggestCommand is " (did you mean ...?)" for a name that no command below cmd has, or "".
func suggestCommand(cmd *cobra.Command, typed string) string {
	if paths := elsewhere(cmd, typed); len(paths) > 0 {
		return didYouMean(paths)
	}
	var names []string
	for _, child := range cmd.Commands() {
		if child.IsAvailableCommand() {
			names = append(names, child.Name())
			if slices.Contains(child.SuggestFor, typed) {
				return didYouMean([]string{child.Name()})
			}
		}
	}
	return didYouMean(near(typed, names))
}

// elsewhere are the commands of that very name which stand below other commands, kubectl's too.
func elsewhere(cmd *cobra.Command, typed string) (paths []string) {
	for _, group := range cmd.Root().Commands() {
		for _, child := range group.Commands() {
			if group != cmd && child.Name() == typed && child.IsAvailableCommand() {
				paths = append(paths, quoted(child.CommandPath()))
			}
		}
	}
	if cmd.HasParent() {
		return paths
	}
	streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: io.Discard, ErrOut: io.Discard}
	for _, child := range kubectlcmd.NewKubectlCommand(kubectlcmd.KubectlOptions{IOStreams: streams}).Commands() {
		if child.Name() == typed && child.IsAvailableCommand() {
			paths = append(paths, quoted(cmd.Name()+" kubectl "+typed))
		}
	}
	return paths
}

func quoted(command string) string { return "'" + command + "'" }

// suggestFlag adds the flags that may be meant to a mistake about flags.
func suggestFlag(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return err
	}
	found := near(unknown.GetSpecifiedName(), flagNames(cmd.Flags()))
	for i := range found {
		found[i] = "--" + found[i]
	}
	return fmt.Errorf("%w%s: run '%s --help'", err, didYouMean(found), cmd.CommandPath())
}

func flagNames(flags *pflag.FlagSet) (names []string) {
	flags.VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	return names
}

func didYouMean(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return " (did you mean " + strings.Join(names, " or ") + "?)"
}

// near are the names that somebody may have meant who typed something else, nearest first.
func near(typed string, names []string) []string {
	typed = strings.ToLower(typed)
	limit := 1 // letters that may be wrong: of three one, of five two
	if len(typed) >= 5 {
		limit = 2
	}
	away := map[string]int{}
	for _, name := range names {
		d := distance(typed, name)
		if d <= limit || len(typed) >= prefixMin && strings.HasPrefix(name, typed) {
			away[name] = d
		}
	}
	found := slices.Collect(maps.Keys(away))
	slices.SortFunc(found, func(a, b string) int { return cmp.Or(cmp.Compare(away[a], away[b]), cmp.Compare(a, b)) })
	return found[:min(len(found), suggestionsMax)]
}

// distance is how many letters have to be added, left out, replaced or swapped with the next to
// make one word of the other.
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			replaced := rows[i-1][j-1]
			if a[i-1] != b[j-1] {
				replaced++
			}
			rows[i][j] = min(replaced, rows[i-1][j]+1, rows[i][j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
