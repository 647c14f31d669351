package corefile

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"
)

// Limits of a file.
const (
	bytesMax  = 256 << 10
	blocksMax = 100
	// problemsMax is how many problems are told: one mistake may make all that follows look wrong.
	problemsMax = 10
)

// Config is what a file says.
type Config struct {
	Blocks   []Block
	Problems []Problem
}

// Block is what holds for some zones: for a name the one with the longest.
type Block struct {
	// Zones are in lower case and fully qualified; "." is all.
	Zones []string
	// Forwards are in their order; none: names are forwarded as without a file.
	Forwards []Forward
	Hosts    *Hosts
	// CacheTTLMax is 0 where the file says nothing.
	CacheTTLMax time.Duration
	Rewrites    []Rewrite
	Log         bool
}

// Forward says who is asked about names in From.
type Forward struct {
	From, To []string
	// Files are those like /etc/resolv.conf that list servers.
	Files []string
	// Except are zones that are not forwarded.
	Except   []string
	ForceTCP bool
}

// Hosts are names with addresses.
type Hosts struct {
	Addresses map[string][]netip.Addr
	TTL       uint32
	// Fallthrough passes names on that are not listed; otherwise they do not exist.
	Fallthrough bool
}

// Problem is a directive that is not honoured.
type Problem struct {
	Line int
	Text string
}

func (p Problem) String() string { return fmt.Sprintf("line %d: %s", p.Line, p.Text) }

// Parse reads a file. What it does not understand it tells in Problems.
func Parse(text string) Config {
	if len(text) > bytesMax {
		return Config{Problems: []Problem{{1, fmt.Sprintf("the file is larger than %d bytes", bytesMax)}}}
	}
	p := &parser{lines: linesOf(text)}
	for p.more() {
		p.block()
	}
	return p.config
}

// parser reads lines of words. A block begins with a line that ends in "{" and ends with the line "}".
type parser struct {
	lines  []line
	at     int
	config Config
}

func (p *parser) more() bool { return p.at < len(p.lines) && len(p.config.Blocks) < blocksMax }

func (p *parser) next() line {
	l := p.lines[p.at]
	p.at++
	return l
}

func (p *parser) problem(l line, format string, args ...any) {
	if len(p.config.Problems) < problemsMax {
		p.config.Problems = append(p.config.Problems, Problem{l.number, fmt.Sprintf(format, args...)})
	}
}

// below are the lines of the block that l opens; none if it opens none. Blocks within are passed over, and told.
func (p *parser) below(l line) []line {
	if !l.opens {
		return nil
	}
	var lines []line
	for p.at < len(p.lines) {
		next := p.next()
		if next.closes {
			return lines
		}
		if next.opens {
			p.problem(next, "%q: a block within a block of this directive", next.words[0])
			p.below(next)
			continue
		}
		lines = append(lines, next)
	}
	p.problem(l, "the block has no end")
	return lines
}

func (p *parser) block() {
	head := p.next()
	if head.closes || !head.opens || len(head.words) == 0 {
		p.problem(head, "%q: want the zones of a server block and {", strings.Join(head.words, " "))
		p.below(head)
		return
	}
	if strings.HasPrefix(head.words[0], "(") {
		p.problem(head, "snippets are not supported")
		p.below(head)
		return
	}
	b := Block{}
	for _, word := range head.words {
		zone, err := zoneOf(word)
		if err != nil {
			p.problem(head, "%v", err)
			continue
		}
		b.Zones = append(b.Zones, zone)
	}
	for p.at < len(p.lines) {
		l := p.next()
		if l.closes {
			if len(b.Zones) > 0 {
				p.config.Blocks = append(p.config.Blocks, b)
			}
			return
		}
		p.directive(&b, l)
	}
	p.problem(head, "the block has no end")
}

// zoneOf is a zone with or without a port. Only the port of DNS is served.
func zoneOf(word string) (string, error) {
	word = strings.TrimSuffix(word, ",")
	name := strings.TrimPrefix(word, "dns://")
	if strings.Contains(name, "://") {
		return "", fmt.Errorf("%q: only plain DNS is served", word)
	}
	if host, port, err := net.SplitHostPort(name); err == nil {
		if port != "53" {
			return "", fmt.Errorf("%q: only port 53 is served", word)
		}
		name = host
	}
	return fqdn(name), nil
}

func fqdn(name string) string {
	return strings.TrimSuffix(strings.ToLower(name), ".") + "."
}

// For is the block for a name in lower case, fully qualified; nil if there is none.
func (c *Config) For(name string) *Block {
	var best *Block
	longest := -1
	for i := range c.Blocks {
		for _, zone := range c.Blocks[i].Zones {
			if Within(name, zone) && len(zone) > longest {
				best, longest = &c.Blocks[i], len(zone)
			}
		}
	}
	return best
}

// Within reports whether a name is a zone or below it.
func Within(name, zone string) bool {
	return zone == "." || name == zone || strings.HasSuffix(name, "."+zone)
}
