package main

import (
	"fmt"
	"strings"

	_ "embed"
)

// equivalentMax bounds the list: each entry is a mutant that nobody looks at again.
const equivalentMax = 40

// equivalentText has a line for each mutant that changes nothing that anybody can see: package, function, what, reason, with tabs between.
//
//go:embed equivalent.tsv
var equivalentText string

// equivalents are the reasons by the mutants' keys.
func equivalents(text string) (map[string]string, error) {
	reasons := map[string]string{}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		at := strings.LastIndexByte(line, '\t')
		if strings.Count(line, "\t") != 3 || at == len(line)-1 {
			return nil, fmt.Errorf("equivalent.tsv: a line has package, function, what and reason, with tabs between, not %q", line)
		}
		reasons[line[:at]] = line[at+1:]
	}
	if len(reasons) > equivalentMax {
		return nil, fmt.Errorf("equivalent.tsv has %d mutants, at most %d may be there", len(reasons), equivalentMax)
	}
	return reasons, nil
}
