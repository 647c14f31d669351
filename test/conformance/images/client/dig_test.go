package main

import (
	"bytes"
	"net"
	"strings"
	"testing"

	"github.com/miekg/dns"
)

// TestDig asks a server on loopback that knows web.a.test, and cuts off what is many.a.test by UDP.
func TestDig(t *testing.T) {
	config := &dns.ClientConfig{Servers: []string{"127.0.0.1"}, Port: serve(t), Search: []string{"b.test", "a.test"}, Ndots: 5}
	const web = "web.a.test. 5 IN A 192.0.2.1"
	for name, c := range map[string]struct{ args, want string }{
		"by UDP":                  {"+notcp +noall +answer web.a.test A", web},
		"by TCP":                  {"+tcp +noall +answer web.a.test A", web},
		"search path":             {"+notcp +noall +answer +search web A", web},
		"no search path":          {"+noall +answer web A", ""},
		"short":                   {"+short web.a.test", "192.0.2.1"},
		"another type":            {"+short web.a.test CNAME", ""},
		"TCP for what is cut off": {"+short many.a.test TXT", `"tcp"`},
	} {
		q, err := parseQuestion(strings.Fields(c.args))
		if err != nil {
			t.Fatal(name, err)
		}
		answer, err := q.ask(config)
		if err != nil {
			t.Fatal(name, err)
		}
		var out bytes.Buffer
		q.print(&out, answer)
		if got := strings.Join(strings.Fields(out.String()), " "); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

func TestDigRefusesWhatItDoesNotKnow(t *testing.T) {
	for _, args := range []string{"", "+trace a.test", "@192.0.2.1 a.test", "-x 192.0.2.1", "a.test b.test"} {
		if _, err := parseQuestion(strings.Fields(args)); err == nil {
			t.Errorf("%q: no error", args)
		}
	}
}

func TestDigWithoutAServer(t *testing.T) {
	q := question{name: "a.test", kind: dns.TypeA, tcp: true}
	if _, err := q.ask(&dns.ClientConfig{Servers: []string{"127.0.0.1"}, Port: "1"}); err == nil {
		t.Error("no error")
	}
}

// serve answers by UDP and TCP on one port until the test ends.
func serve(t *testing.T) (port string) {
	packets, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", packets.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	for _, server := range []*dns.Server{{PacketConn: packets}, {Listener: listener}} {
		server.Handler = dns.HandlerFunc(answerOne)
		started, ended := make(chan struct{}), make(chan error)
		server.NotifyStartedFunc = func() { close(started) }
		go func() { ended <- server.ActivateAndServe() }()
		<-started
		t.Cleanup(func() { _ = server.Shutdown(); <-ended })
	}
	_, port, _ = net.SplitHostPort(listener.Addr().String())
	return port
}

func answerOne(w dns.ResponseWriter, ask *dns.Msg) {
	answer := new(dns.Msg).SetReply(ask)
	asked, network := ask.Question[0], w.LocalAddr().Network()
	switch {
	case asked.Name == "many.a.test.":
		answer.Truncated = network == "udp"
		record, _ := dns.NewRR(`many.a.test. 5 IN TXT "` + network + `"`)
		answer.Answer = append(answer.Answer, record)
	case asked.Name != "web.a.test.":
		answer.Rcode = dns.RcodeNameError
	case asked.Qtype == dns.TypeA:
		record, _ := dns.NewRR("web.a.test. 5 IN A 192.0.2.1")
		answer.Answer = append(answer.Answer, record)
	}
	_ = w.WriteMsg(answer)
}

func TestNslookup(t *testing.T) {
	config := &dns.ClientConfig{Servers: []string{"127.0.0.1"}, Port: serve(t), Search: []string{"a.test"}, Ndots: 5}
	var out bytes.Buffer
	if err := printAddresses(&out, config, "web"); err != nil || out.String() != "Name:\tweb.a.test.\nAddress: 192.0.2.1\n" {
		t.Errorf("web: %q, %v", out.String(), err)
	}
	for _, name := range []string{"missing.test.", "many.a.test."} {
		if err := printAddresses(&out, config, name); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
