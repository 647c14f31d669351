// Command manifests sends the manifests of other projects to upstream's kube-apiserver and to this one, and tells each difference of their
// answers: status, what is wrong, warnings, and the object as it would be stored, with its defaults and the owners of its fields.
//
//	UPSTREAM_ASSETS=DIR SETPOINT_ASSETS=DIR manifests [REGEXP]
//
// The projects are Go modules (modules.txt), whose source Go fetches; REGEXP chooses some by their paths. Of each the definitions are created
// first, all else is a dry run. Differences that are meant stand in known.txt, with their reasons; any other ends the program with 1.
package main

import (
	"bufio"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
)

//go:embed modules.txt
var modules string

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "manifests:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	chosen, err := regexp.Compile(strings.Join(args, ""))
	if err != nil {
		return err
	}
	sides, stop, err := startSides(os.Getenv("UPSTREAM_ASSETS"), os.Getenv("SETPOINT_ASSETS"))
	if err != nil {
		return err
	}
	defer stop()
	report := newReport()
	for line := range strings.Lines(modules) {
		module := strings.TrimSpace(line)
		if !chosen.MatchString(module) {
			continue
		}
		folder, err := fetched(module)
		if err != nil {
			fmt.Printf("not played: %s: %v\n", module, err)
			continue
		}
		documents := read(folder)
		fmt.Fprintf(os.Stderr, "%s: %d objects\n", module, len(documents))
		play(sides, documents, report)
	}
	return report.print(bufio.NewWriter(os.Stdout))
}

// fetched is the folder of a module, which Go fetches.
func fetched(module string) (string, error) {
	out, err := exec.Command("go", "mod", "download", "-json", module).Output()
	var found struct{ Dir, Error string }
	if json.Unmarshal(out, &found) == nil && found.Error != "" {
		return "", fmt.Errorf("%s", strings.ReplaceAll(found.Error, "\n", " "))
	}
	return found.Dir, err
}
