package corefile

import (
	"regexp"
	"strconv"
	"strings"
)

// Rewrite asks for another name.
type Rewrite struct {
	// Continue lets those that follow see the new name.
	Continue bool
	kind     kind
	from, to string
	pattern  *regexp.Regexp
}

type kind int

const (
	exact kind = iota
	prefix
	suffix
	substring
	pattern
)

var kinds = map[string]kind{"exact": exact, "prefix": prefix, "suffix": suffix, "substring": substring, "regex": pattern}

// nameMax is the longest name, in bytes.
const nameMax = 254

// Rewritten is the name to ask for instead of name, which is in lower case and fully qualified.
func (b *Block) Rewritten(name string) string {
	for _, r := range b.Rewrites {
		next, ok := r.apply(name)
		if !ok || len(next) > nameMax {
			continue
		}
		name = next
		if !r.Continue {
			break
		}
	}
	return name
}

func (r Rewrite) apply(name string) (string, bool) {
	switch r.kind {
	case exact:
		return r.to, name == r.from
	case prefix:
		rest, ok := strings.CutPrefix(name, r.from)
		return r.to + rest, ok
	case suffix:
		rest, ok := strings.CutSuffix(name, r.from)
		return rest + r.to, ok
	case substring:
		return strings.ReplaceAll(name, r.from, r.to), r.from != "" && strings.Contains(name, r.from)
	case pattern:
		found := r.pattern.FindStringSubmatch(name)
		if found == nil {
			return "", false
		}
		next := r.to
		for i := len(found) - 1; i >= 0; i-- { // {10} before {1}
			next = strings.ReplaceAll(next, "{"+strconv.Itoa(i)+"}", found[i])
		}
		return fqdn(next), true
	}
	return "", false
}
