package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"github.com/miekg/dns"
)

const (
	resolvConf = "/etc/resolv.conf"
	// answerWait is how long dig waits for each server, as it does unless told.
	answerWait = 5 * time.Second
	// answerBytes is the largest answer by UDP that dig asks for.
	answerBytes = 1232

	exitNoReply = 9
)

var errNoServer = errors.New("no servers could be reached")

// question is what dig asks.
type question struct {
	name               string
	kind               uint16
	tcp, short, search bool
}

// dig asks the servers of resolv.conf and prints the section of answers, which is what +noall +answer asks for.
func dig(args []string) (code int, err error) {
	q, err := parseQuestion(args)
	if err != nil {
		return 1, err
	}
	config, err := dns.ClientConfigFromFile(resolvConf)
	if err != nil {
		return exitNoReply, err
	}
	answer, err := q.ask(config)
	if err != nil {
		return exitNoReply, err
	}
	q.print(os.Stdout, answer)
	return 0, nil
}

func parseQuestion(args []string) (q question, err error) {
	q.kind = dns.TypeA
	for _, arg := range args {
		kind, isKind := dns.StringToType[arg]
		switch {
		case arg == "+noall", arg == "+answer":
		case arg == "+tcp", arg == "+notcp":
			q.tcp = arg == "+tcp"
		case arg == "+short":
			q.short = true
		case arg == "+search":
			q.search = true
		case strings.HasPrefix(arg, "+"), strings.HasPrefix(arg, "-"), strings.HasPrefix(arg, "@"):
			return q, fmt.Errorf("unknown option %q", arg)
		case isKind:
			q.kind = kind
		case q.name == "":
			q.name = arg
		default:
			return q, fmt.Errorf("want one name, not %q too", arg)
		}
	}
	if q.name == "" {
		return q, errors.New("want a name")
	}
	return q, nil
}

// ask goes along the search path, if told to, until a name exists.
func (q question) ask(config *dns.ClientConfig) (answer *dns.Msg, err error) {
	names := []string{dns.Fqdn(q.name)}
	if q.search {
		names = config.NameList(q.name)
	}
	for _, name := range names {
		answer, err = q.exchange(config, name)
		if err != nil || answer.Rcode == dns.RcodeSuccess {
			return answer, err
		}
	}
	return answer, nil
}

// exchange returns the answer of the first server that gives one, and asks by TCP for what UDP cuts off.
func (q question) exchange(config *dns.ClientConfig, name string) (*dns.Msg, error) {
	ask := new(dns.Msg).SetQuestion(name, q.kind).SetEdns0(answerBytes, false)
	byUDP, byTCP := dns.Client{Net: "udp", Timeout: answerWait}, dns.Client{Net: "tcp", Timeout: answerWait}
	failed := errNoServer
	for _, server := range config.Servers {
		address := net.JoinHostPort(server, config.Port)
		client := &byUDP
		if q.tcp {
			client = &byTCP
		}
		answer, _, err := client.Exchange(ask, address)
		if err == nil && answer.Truncated && !q.tcp {
			answer, _, err = byTCP.Exchange(ask, address)
		}
		if err == nil {
			return answer, nil
		}
		failed = errors.Join(failed, err)
	}
	return nil, failed
}

func (q question) print(out io.Writer, answer *dns.Msg) {
	for _, record := range answer.Answer {
		line := record.String()
		if q.short {
			line = strings.TrimPrefix(line, record.Header().String())
		}
		fmt.Fprintln(out, line)
	}
}
