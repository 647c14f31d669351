package corefile

import (
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// fixed say what is done in any case, or what one process need not be told.
var fixed = map[string]bool{
	"errors": true, "health": true, "ready": true, "prometheus": true, "loop": true, "reload": true, "loadbalance": true, "bind": true,
}

// directive reads one of a server block.
func (p *parser) directive(b *Block, l line) {
	name, args := l.words[0], l.words[1:]
	read, known := map[string]func(*Block, line, []string){
		"log":        p.log,
		"forward":    p.forward,
		"hosts":      p.hosts,
		"cache":      p.cache,
		"rewrite":    p.rewrite,
		"kubernetes": p.kubernetes,
	}[name]
	switch {
	case known:
		read(b, l, args)
	case fixed[name]:
		p.below(l)
	default:
		p.problem(l, "%q is not supported", name)
		p.below(l)
	}
}

func (p *parser) log(b *Block, l line, args []string) {
	b.Log = true
	if len(args) > 0 || l.opens {
		p.problem(l, "log: names, formats and classes are not supported: all questions are logged")
	}
	p.below(l)
}

// kubernetes is accepted as kubeadm writes it: the zone is the cluster's in any case.
func (p *parser) kubernetes(_ *Block, l line, _ []string) {
	for _, option := range p.below(l) {
		switch word := option.words[0]; word {
		case "fallthrough", "ttl":
		case "pods":
			if len(option.words) != 2 || option.words[1] != "insecure" {
				p.problem(option, "kubernetes: pods: only insecure is supported")
			}
		default:
			p.problem(option, "kubernetes: %q is not supported", word)
		}
	}
}

func (p *parser) forward(b *Block, l line, args []string) {
	options := p.below(l)
	if len(args) < 2 {
		p.problem(l, "forward: want a zone and servers")
		return
	}
	f := Forward{From: []string{fqdn(args[0])}}
	for _, to := range args[1:] {
		switch address, err := serverOf(to); {
		case strings.HasPrefix(to, "/"):
			f.Files = append(f.Files, to)
		case err != nil:
			p.problem(l, "forward: %q: want an address, with a port or not", to)
		default:
			f.To = append(f.To, address)
		}
	}
	for _, option := range options {
		switch word := option.words[0]; word {
		case "prefer_udp", "max_concurrent", "expire", "health_check", "max_fails", "next": // as it is done, or nearly
		case "force_tcp":
			f.ForceTCP = true
		case "except":
			for _, zone := range option.words[1:] {
				f.Except = append(f.Except, fqdn(zone))
			}
		case "policy":
			if len(option.words) != 2 || option.words[1] != "sequential" {
				p.problem(option, "forward: policy: servers are asked in sequence, the one that answered last first")
			}
		default:
			p.problem(option, "forward: %q is not supported", word)
		}
	}
	b.Forwards = append(b.Forwards, f)
}

// serverOf is an address and a port.
func serverOf(text string) (string, error) {
	text = strings.TrimPrefix(text, "dns://")
	if at, err := netip.ParseAddrPort(text); err == nil {
		return at.String(), nil
	}
	address, err := netip.ParseAddr(text)
	if err != nil {
		return "", err
	}
	return netip.AddrPortFrom(address, 53).String(), nil
}

const hostsTTL = 3600

func (p *parser) hosts(b *Block, l line, args []string) {
	h := &Hosts{Addresses: map[string][]netip.Addr{}, TTL: hostsTTL}
	if len(args) > 0 {
		p.problem(l, "hosts: files and zones are not supported: names stand in the block")
	}
	for _, option := range p.below(l) {
		switch option.words[0] {
		case "fallthrough":
			h.Fallthrough = true
		case "ttl":
			if n, err := strconv.ParseUint(strings.Join(option.words[1:], " "), 10, 16); err == nil && n > 0 {
				h.TTL = uint32(n)
			} else {
				p.problem(option, "hosts: ttl: want seconds from 1 to 65535")
			}
		case "no_reverse", "reload":
		default:
			address, err := netip.ParseAddr(option.words[0])
			if err != nil {
				p.problem(option, "hosts: %q is no address", option.words[0])
				continue
			}
			for _, name := range option.words[1:] {
				h.Addresses[fqdn(name)] = append(h.Addresses[fqdn(name)], address)
			}
		}
	}
	b.Hosts = h
}

func (p *parser) cache(b *Block, l line, args []string) {
	for _, option := range p.below(l) {
		if option.words[0] != "serve_stale" && option.words[0] != "prefetch" {
			p.problem(option, "cache: %q is not supported", option.words[0])
		}
	}
	if len(args) == 0 {
		return
	}
	seconds, err := strconv.ParseUint(args[0], 10, 16)
	if err != nil || seconds == 0 || len(args) > 1 {
		p.problem(l, "cache: want seconds from 1 to 65535, and no zones")
		return
	}
	b.CacheTTLMax = time.Duration(seconds) * time.Second
}

// patternMax bounds a pattern, in bytes.
const patternMax = 1000

// rewrite [stop|continue] name [exact|prefix|suffix|substring|regex] FROM TO [answer …].
func (p *parser) rewrite(b *Block, l line, args []string) {
	p.below(l)
	r := Rewrite{kind: exact}
	if len(args) > 0 && (args[0] == "stop" || args[0] == "continue") {
		r.Continue = args[0] == "continue"
		args = args[1:]
	}
	if len(args) < 3 || args[0] != "name" {
		p.problem(l, "rewrite: only names can be rewritten")
		return
	}
	args = args[1:]
	if kind, ok := kinds[args[0]]; ok {
		r.kind, args = kind, args[1:]
	}
	if len(args) < 2 || len(args) > 2 && args[2] != "answer" {
		p.problem(l, "rewrite: want two names")
		return
	}
	if len(args) > 2 && (len(args) != 4 || args[3] != "auto") {
		p.problem(l, "rewrite: answers get the name that was asked for, as by \"answer auto\"")
	}
	r.from, r.to = strings.ToLower(args[0]), strings.ToLower(args[1])
	switch r.kind {
	case exact:
		r.from, r.to = fqdn(r.from), fqdn(r.to)
	case suffix:
		r.from, r.to = fqdn(r.from), fqdn(r.to)
	case pattern:
		compiled, err := regexp.Compile(args[0])
		if err != nil || len(args[0]) > patternMax {
			p.problem(l, "rewrite: %q is no pattern", args[0][:min(len(args[0]), 100)])
			return
		}
		r.pattern, r.to = compiled, args[1]
	case prefix, substring:
	}
	b.Rewrites = append(b.Rewrites, r)
}
