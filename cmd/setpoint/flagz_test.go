package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// secretive names would have a secret as their value, unless it is in a file.
var secretive = regexp.MustCompile(`token|secret|password|passphrase|credential|key`)

// TestNoFlagTakesASecret: /flagz shows all flags of a server, so secrets must be in files.
func TestNoFlagTakesASecret(t *testing.T) {
	newServer().Flags().VisitAll(func(f *pflag.Flag) {
		if secretive.MatchString(f.Name) && !strings.HasSuffix(f.Name, "-file") {
			t.Errorf("--%s: /flagz would show its value; take a file", f.Name)
		}
	})
}
