package main

import (
	"regexp"
	"strings"
	"testing"
)

// TestHelpListsEveryCommand: a command that help leaves out is one that nobody finds.
func TestHelpListsEveryCommand(t *testing.T) {
	root := newRoot()
	root.InitDefaultHelpCmd()
	var help strings.Builder
	root.SetOut(&help)
	root.SetArgs([]string{"--help"})
	if err := root.Execute(); err != nil {
		t.Fatal(err)
	}
	for _, cmd := range root.Commands() {
		line := regexp.MustCompile(`(?m)^  ` + cmd.Name() + ` +\S`)
		if n := len(line.FindAllString(help.String(), -1)); !cmd.Hidden && n != 1 {
			t.Errorf("help lists %q %d times", cmd.Name(), n)
		}
	}
}
