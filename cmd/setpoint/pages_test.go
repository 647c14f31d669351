package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

const repository = "../.."

var (
	fenced    = regexp.MustCompile("(?ms)^ *```[a-z]*\n(.*?)^ *```")
	codeSpan  = regexp.MustCompile("`([^`\n]+)`")
	typedHere = regexp.MustCompile(`(?m)(?:^|[|;&(]|\$ |sudo |^- +)\s*(?:[A-Z_]+=\S+ +)*setpoint +([^|;>)#\n]+)`)
	pageFlag  = regexp.MustCompile(`(?:^|[ \[|])--([a-z][a-z0-9-]*)`)
	continued = regexp.MustCompile(`(?:\\|,|\+)\n\s*`) // a line of a shell, or a list in Go, that goes on
	word      = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)
)

// A typed command is one that a page tells people to type: its path, such as "cluster status", and its flags.
type typed struct {
	page, text string
	command    *cobra.Command
	flags      []string
}

func (c typed) path() string { return strings.TrimPrefix(c.command.CommandPath(), "setpoint ") }

// TestPagesTypeCommandsThatAreThere: a page that names a command or a flag that is gone costs its reader an hour.
func TestPagesTypeCommandsThatAreThere(t *testing.T) {
	commands := typedCommands(t)
	if len(commands) < 100 {
		t.Errorf("only %d commands were found on the pages: does this test still find them?", len(commands))
	}
	for _, c := range commands {
		for _, flag := range c.flags {
			if flag != "help" && c.command.Flag(flag) == nil && c.command.InheritedFlags().Lookup(flag) == nil {
				t.Errorf("%s: `setpoint %s` has a flag --%s, which `setpoint %s` does not have", c.page, c.text, flag, c.path())
			}
		}
	}
}

// TestCommandsOfOperationsAreTried: what docs/operations tells somebody to type at three in the morning is typed by a test, with its flags.
func TestCommandsOfOperationsAreTried(t *testing.T) {
	trials := readTrials(t)
	for _, c := range typedCommands(t) {
		if !strings.HasPrefix(c.page, "docs/operations") {
			continue
		}
		if missing := untried(c, trials); missing != "" {
			t.Errorf("%s tells people to type `setpoint %s`: no test types %s", c.page, c.text, missing)
		}
	}
}

// untried says what of a command no test types, if anything. A test types it as a line of a script, or as a list of words in Go.
func untried(c typed, trials []string) string {
	words := strings.Fields(c.path())
	call := regexp.MustCompile(`(?:setpoint|start-[a-z]+|^\W*|") *` + strings.Join(words, `(?: +|", "|\\s\+)`) + `\b`)
	calls := slices.DeleteFunc(slices.Clone(trials), func(line string) bool {
		return !strings.Contains(line, words[len(words)-1]) || !call.MatchString(line) // few lines are worth the second question
	})
	if len(calls) == 0 {
		return "the command"
	}
	for _, flag := range c.flags {
		typed := regexp.MustCompile(`--` + flag + `\b`)
		if !slices.ContainsFunc(calls, typed.MatchString) {
			return "--" + flag + " with it"
		}
	}
	return ""
}

// typedCommands are those of all pages. kubectl's own flags are upstream's.
func typedCommands(t *testing.T) []typed {
	t.Helper()
	root := newRoot()
	root.InitDefaultHelpCmd()
	var commands []typed
	for page, text := range readPages(t) {
		for _, line := range codeOf(text) {
			command := commandOf(root, line)
			switch {
			case command == nil:
				t.Errorf("%s: there is no command `setpoint %s`", page, line)
			case command != root && !command.DisableFlagParsing:
				commands = append(commands, typed{page, line, command, flagsOf(line)})
			}
		}
	}
	return commands
}

// commandOf follows the words of a line as far as they are commands. Nil: the first one is none.
func commandOf(root *cobra.Command, line string) *cobra.Command {
	command := root
	for name := range strings.FieldsSeq(line) {
		next := slices.IndexFunc(command.Commands(), func(sub *cobra.Command) bool { return sub.Name() == name || sub.HasAlias(name) })
		if next < 0 && command == root && word.MatchString(name) {
			return nil
		}
		if next < 0 {
			break
		}
		command = command.Commands()[next]
	}
	return command
}

func flagsOf(line string) []string {
	var flags []string
	for _, found := range pageFlag.FindAllStringSubmatch(line, -1) {
		flags = append(flags, found[1])
	}
	return flags
}

// codeOf is what follows the word setpoint in the code of a page, up to a pipe, a comment or the end of the line.
func codeOf(text string) []string {
	var lines []string
	add := func(code string) {
		for _, found := range typedHere.FindAllStringSubmatch(strings.ReplaceAll(code, "\\\n", " "), -1) {
			lines = append(lines, strings.TrimSpace(found[1]))
		}
	}
	for _, block := range fenced.FindAllStringSubmatch(text, -1) {
		add(block[1])
	}
	for _, span := range codeSpan.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
		add(span[1])
	}
	return lines
}

// readPages are the texts for people, by their path in the repository. CHANGELOG says what once was.
func readPages(t *testing.T) map[string]string {
	t.Helper()
	pages := map[string]string{}
	for _, pattern := range []string{"README.md", "SECURITY.md", "docs/*.md", "docs/operations/*.md", "deploy/*/README.md", "deploy/README.md"} {
		found, err := filepath.Glob(filepath.Join(repository, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range found {
			pages[strings.TrimPrefix(file, repository+"/")] = readText(t, file)
		}
	}
	return pages
}

// readTrials are the lines of scripts and tests that run the program; lines that go on are one.
func readTrials(t *testing.T) []string {
	t.Helper()
	var trials []string
	for _, folder := range []string{"cmd/setpoint", "test", "deploy"} {
		err := filepath.WalkDir(filepath.Join(repository, folder), func(path string, entry fs.DirEntry, err error) error {
			trial := strings.HasSuffix(path, ".txtar") || strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, ".sh")
			if err == nil && trial && filepath.Base(path) != "pages_test.go" {
				trials = append(trials, strings.Split(continued.ReplaceAllString(readText(t, path), " "), "\n")...)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return trials
}

func readText(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestCodeOfPages(t *testing.T) {
	page := "Type `setpoint node status -n shop | head`, not setpoint alone.\n```sh\nsetpoint backup create a \\\n  --full  # all\n" +
		"kubectl get x\ncat y | setpoint why pod/z\n```\n"
	want := []string{"backup create a    --full", "why pod/z", "node status -n shop"}
	if got := codeOf(page); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%q, want %q", got, want)
	}
	if command := commandOf(newRoot(), "nonsense x"); command != nil {
		t.Errorf("nonsense is %s", command.CommandPath())
	}
}
