package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	// packageLimit is how long the tests of one package may take on one side, unless the recipe says otherwise.
	packageLimit = 10 * time.Minute
	// fetchLimit and compileLimit bound what comes before.
	fetchLimit   = 10 * time.Minute
	compileLimit = 30 * time.Minute
)

// recipe is how one suite is run.
type recipe struct {
	name            string            // as make zoo and the table call it
	module, version string            // what the module proxy is asked for
	nested          []string          // folders of modules within it, of its version, that its go.mod replaces by these folders
	beside          map[string]string // folders that it does not come with, and what fills them: MODULE@VERSION, or MODULE@VERSION/FOLDER
	raised          []string          // modules at versions above those that its go.mod asks for, so that suites share what is compiled
	packages        []string          // below the module; "." is the module's root
	tags            string            // build tags of its tests, separated by commas
	run             string            // the tests that run, as a regular expression; "" is all of them
	flags           []string          // of its own, for the test programs
	ownPaths        bool              // its tests ask the runtime where their source lies, so paths are not trimmed
	needs           string            // what it wants besides an API server, for people
	atLeast         int               // specs that pass on upstream's; fewer, and the suite has not really run
	env             []string          // NAME=value, for the tests; $MODULE is the module's folder
	limit           time.Duration
	reasons         map[string]string // why a spec that passes on upstream's fails here, by "package: spec"
}

func (r recipe) packageLimit() time.Duration {
	if r.limit > 0 {
		return r.limit
	}
	return packageLimit
}

// choose returns the recipes of these names, separated by commas; all if there are none.
func choose(all []recipe, names string) ([]recipe, error) {
	if names == "" {
		return all, nil
	}
	var chosen []recipe
	for _, name := range strings.Split(names, ",") {
		at := slices.IndexFunc(all, func(r recipe) bool { return r.name == name })
		if at < 0 {
			return nil, fmt.Errorf("there is no suite %q; there are %s", name, strings.Join(namesOf(all), ", "))
		}
		chosen = append(chosen, all[at])
	}
	return chosen, nil
}

func namesOf(all []recipe) (names []string) {
	for _, r := range all {
		names = append(names, r.name)
	}
	return names
}
