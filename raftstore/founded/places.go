package founded

import "slices"

// Places are where servers may be: one that has moved is known at more than one address. The zero value has none.
type Places struct {
	names []string
	of    map[string][]string
}

// Add notes an address of a server, behind those that are better.
func (p *Places) Add(name, address string) {
	if p.of == nil {
		p.of = map[string][]string{}
	}
	if _, known := p.of[name]; !known {
		p.names = append(p.names, name)
	}
	if !slices.Contains(p.of[name], address) {
		p.of[name] = append(p.of[name], address)
	}
}

// Names are the servers in the order in which they were added.
func (p *Places) Names() []string { return p.names }

// Of are the addresses of a server, the best first.
func (p *Places) Of(name string) []string { return p.of[name] }
