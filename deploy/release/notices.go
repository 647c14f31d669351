package main

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

const noticesHead = `Licences of what is linked into setpoint

Each module with its version and the licences in it; below, their texts, each once, with the modules that have it. The source of a module is
what Go's module proxies give out under its name and version.

`

// notices writes the licences of all that the binaries hold.
func notices(out io.Writer, binaries []string) error {
	modules, err := linked(binaries)
	if err != nil {
		return err
	}
	return writeNotices(out, modules)
}

// writeNotices expects the module that all is for as the first, and Go's own library as the last.
func writeNotices(out io.Writer, modules []module) error {
	of := map[string][]string{} // files of modules, by their text
	w := bufio.NewWriter(out)
	w.WriteString(noticesHead)
	for i, m := range modules {
		deep := i > 0 && i < len(modules)-1
		found, err := texts(m, deep)
		if err != nil {
			return err
		}
		licence, err := judge(m, found)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%s: %s\n", m.name(), licence)
		for _, path := range slices.Sorted(maps.Keys(found)) {
			of[found[path]] = append(of[found[path]], m.name()+": "+path)
		}
	}
	byFirst := slices.SortedFunc(maps.Keys(of), func(a, b string) int { return strings.Compare(of[a][0], of[b][0]) })
	for _, text := range byFirst {
		fmt.Fprintf(w, "\n%s\n%s\n\n%s\n", strings.Repeat("=", 80), strings.Join(of[text], "\n"), text)
	}
	return w.Flush()
}
