package dns

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/setpoint-io/setpoint/internal/clusterdns"
)

// held is a Network that has addresses of loopback.
type held struct {
	mu sync.Mutex
	at netip.Addr
}

func (h *held) Hold(a netip.Addr) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.at = a
	return nil
}

func (h *held) Held() netip.Addr {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.at
}

func (h *held) Dropped() (uint64, error) { return 7, nil }

// node is a server under test.
type node struct {
	t        *testing.T
	client   *fake.Clientset
	server   *server
	problems chan string
	address  string
}

func service(namespace, name string, labels map[string]string, spec corev1.ServiceSpec) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}, Spec: spec}
}

// own is the Service at an address of loopback, so that several tests can run.
func own(address string) *corev1.Service {
	return service("kube-system", clusterdns.Service, map[string]string{clusterdns.ProxyLabel: clusterdns.ProxyName}, corev1.ServiceSpec{ClusterIP: address, ClusterIPs: []string{address}})
}

func alias(name, to string) *corev1.Service {
	return service("ns", name, nil, corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: to})
}

// TestAnAgentThatComesBack without a server answers where an earlier one did, from what that one kept. What it cannot know is a failure,
// and not "no such name".
func TestAnAgentThatComesBack(t *testing.T) {
	file := filepath.Join(t.TempDir(), "names")
	comesBack := func(address string) *node {
		n := &node{t: t, client: fake.NewClientset(), address: address + ":15353"}
		n.server = newServer(Config{
			Informers: informers.NewSharedInformerFactory(n.client, 0), Client: n.client, Network: &held{at: netip.MustParseAddr(address)}, Kept: file,
			Domain: "cluster.local", Ports: Ports{DNS: 15353, Metrics: 19153}, Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
		})
		n.run()
		return n
	}
	if m := comesBack("127.0.53.5").ask("udp", "web.ns.svc.cluster.local.", dns.TypeA); m.Rcode != dns.RcodeServerFailure {
		t.Errorf("nothing kept: %v", m)
	}
	t.Run("an earlier agent", func(t *testing.T) { // it keeps when it ends
		startKeeping(t, file, "127.0.53.6", nil).ask("udp", "web.ns.svc.cluster.local.", dns.TypeA)
	})
	n := comesBack("127.0.53.7")
	if m := n.ask("udp", "web.ns.svc.cluster.local.", dns.TypeA); len(m.Answer) != 1 || !strings.HasSuffix(m.Answer[0].String(), "\t10.96.0.9") {
		t.Errorf("kept: %v", m)
	}
	if m := n.ask("udp", "no.ns.svc.cluster.local.", dns.TypeA); m.Rcode != dns.RcodeNameError {
		t.Errorf("not kept: %v", m)
	}
	if err := os.WriteFile(file, []byte("broken"), 0o600); err != nil {
		t.Fatal(err)
	}
	if m := comesBack("127.0.53.8").ask("udp", "web.ns.svc.cluster.local.", dns.TypeA); m.Rcode != dns.RcodeServerFailure {
		t.Errorf("a broken file: %v", m)
	}
}

// TestSettled: once it is told, the first question is answered; before, nobody knows of the Service. Where others answer it is told too.
func TestSettled(t *testing.T) {
	settledWith := func(address string) (settled chan struct{}, client *fake.Clientset) {
		settled, client = make(chan struct{}), fake.NewClientset()
		n := &node{t: t, client: client, address: address + ":15353"}
		factory := informers.NewSharedInformerFactory(client, 0)
		n.server = newServer(Config{
			Informers: factory, Client: client, Network: &held{}, Domain: "cluster.local", Ports: Ports{DNS: 15353, Metrics: 19153},
			Settled: func() { close(settled) }, Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
		})
		factory.StartWithContext(t.Context())
		factory.WaitForCacheSync(t.Context().Done())
		n.run()
		return settled, client
	}
	create := func(client *fake.Clientset, s *corev1.Service) {
		if _, err := client.CoreV1().Services(s.Namespace).Create(t.Context(), s, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	settled, client := settledWith("127.0.53.9")
	select {
	case <-settled:
		t.Error("without the Service")
	case <-time.After(2 * syncInterval):
	}
	create(client, own("127.0.53.9"))
	<-settled
	question := new(dns.Msg).SetQuestion("kubernetes.default.svc.cluster.local.", dns.TypeA)
	if _, _, err := new(dns.Client).ExchangeContext(t.Context(), question, "127.0.53.9:15353"); err != nil {
		t.Errorf("the first question: %v", err)
	}
	settled, client = settledWith("127.0.53.10")
	others := own("127.0.53.10")
	others.Labels = nil
	create(client, others)
	<-settled
}

// run runs the server until the test ends.
func (n *node) run() {
	ctx, cancel := context.WithCancel(n.t.Context())
	var children sync.WaitGroup
	children.Go(func() { n.server.run(ctx) })
	n.t.Cleanup(func() {
		cancel()
		children.Wait()
	})
}

// start runs a server at address until the test ends.
func start(t *testing.T, address string, upstreams []string, objects ...runtime.Object) *node {
	t.Helper()
	return startKeeping(t, "", address, upstreams, objects...)
}

// startKeeping runs one that keeps the Services in a file.
func startKeeping(t *testing.T, kept, address string, upstreams []string, objects ...runtime.Object) *node {
	t.Helper()
	file := filepath.Join(t.TempDir(), "resolv.conf")
	if err := os.WriteFile(file, []byte("nameserver "+strings.Join(upstreams, "\nnameserver ")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	objects = append(objects, own(address), service("ns", "web", nil, corev1.ServiceSpec{ClusterIP: "10.96.0.9", ClusterIPs: []string{"10.96.0.9"}}),
		alias("out", "example.com"), alias("in", "web.ns.svc.cluster.local"), alias("round", "about.ns.svc.cluster.local"), alias("about", "round.ns.svc.cluster.local"))
	n := &node{t: t, client: fake.NewClientset(objects...), problems: make(chan string, 100), address: net.JoinHostPort(address, "15353")}
	factory := informers.NewSharedInformerFactory(n.client, 0)
	n.server = newServer(Config{
		Informers: factory, Client: n.client, Network: &held{}, Domain: "cluster.local", ResolvConf: file, Kept: kept, Ports: Ports{DNS: 15353, Metrics: 19153},
		Problem: func(_ *corev1.ObjectReference, text string) { n.problems <- text }, Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	ctx, cancel := context.WithCancel(t.Context())
	factory.StartWithContext(ctx)
	t.Cleanup(func() {
		cancel()
		factory.Shutdown()
	})
	n.run()
	return n
}

// ask waits until somebody answers.
func (n *node) ask(protocol, name string, qtype uint16, options ...func(*dns.Msg)) *dns.Msg {
	n.t.Helper()
	m := new(dns.Msg)
	m.SetQuestion(name, qtype)
	for _, o := range options {
		o(m)
	}
	client := dns.Client{Net: protocol, Timeout: 5 * time.Second}
	deadline := time.Now().Add(20 * time.Second)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		got, _, err := client.ExchangeContext(n.t.Context(), m, n.address)
		if err == nil {
			return got
		}
		if time.Now().After(deadline) {
			n.t.Fatal(err)
		}
		<-tick.C
	}
}

// lines are the code, if it is an error, and the answers without names and times.
func lines(m *dns.Msg) (all []string) {
	if m.Rcode != dns.RcodeSuccess {
		all = append(all, dns.RcodeToString[m.Rcode])
	}
	for _, r := range m.Answer {
		_, rest, _ := strings.Cut(r.String(), "\tIN\t")
		all = append(all, strings.ReplaceAll(rest, "\t", " "))
	}
	return all
}

// upstream is another server; what it answers is the test's.
func upstream(t *testing.T, address string, answer func(w dns.ResponseWriter, m *dns.Msg)) {
	t.Helper()
	conn, err := net.ListenPacket("udp", address)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []*dns.Server{{PacketConn: conn}, {Listener: listener}} {
		s.Handler = dns.HandlerFunc(answer)
		started := make(chan struct{})
		s.NotifyStartedFunc = func() { close(started) }
		go func() { _ = s.ActivateAndServe() }()
		<-started
		t.Cleanup(func() { _ = s.Shutdown() })
	}
}

// always answers with one address.
func always(address string) func(w dns.ResponseWriter, m *dns.Msg) {
	return func(w dns.ResponseWriter, m *dns.Msg) {
		reply := new(dns.Msg).SetReply(m)
		if m.Question[0].Qtype == dns.TypeA {
			reply.Answer = []dns.RR{&dns.A{Hdr: dns.RR_Header{Name: m.Question[0].Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 60}, A: net.ParseIP(address)}}
		}
		_ = w.WriteMsg(reply)
	}
}

func TestQuestions(t *testing.T) {
	corefile := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: clusterdns.ConfigMap}, Data: map[string]string{clusterdns.ConfigKey: `
.:53 {
    errors
    kubernetes cluster.local in-addr.arpa ip6.arpa {
        pods insecure
    }
    hosts {
        192.0.2.7 printer.corp
        fallthrough
    }
    rewrite name old.example web.ns.svc.cluster.local
    forward . 127.0.53.9:15354
    autopath @kubernetes
}
`}}
	upstream(t, "127.0.53.9:15354", always("192.0.2.1"))
	n := start(t, "127.0.53.1", nil, corefile)
	n.ask("udp", "web.ns.svc.cluster.local.", dns.TypeA)
	if got := <-n.problems; !strings.Contains(got, `"autopath" is not supported`) {
		t.Errorf("told %q", got)
	}
	for _, c := range []struct {
		name  string
		qtype uint16
		want  []string
	}{
		{"WEB.ns.svc.cluster.local.", dns.TypeA, []string{"A 10.96.0.9"}},
		{"web.ns.svc.cluster.local.", dns.TypeAAAA, nil},
		{"missing.ns.svc.cluster.local.", dns.TypeA, []string{"NXDOMAIN"}},
		{"in.ns.svc.cluster.local.", dns.TypeA, []string{"CNAME web.ns.svc.cluster.local.", "A 10.96.0.9"}},
		{"in.ns.svc.cluster.local.", dns.TypeCNAME, []string{"CNAME web.ns.svc.cluster.local."}},
		{"out.ns.svc.cluster.local.", dns.TypeA, []string{"CNAME example.com.", "A 192.0.2.1"}},
		{"round.ns.svc.cluster.local.", dns.TypeA, []string{"SERVFAIL"}},
		{"example.com.", dns.TypeA, []string{"A 192.0.2.1"}},
		{"printer.corp.", dns.TypeA, []string{"A 192.0.2.7"}},
		{"printer.corp.", dns.TypeAAAA, nil},
		{"old.example.", dns.TypeA, []string{"A 10.96.0.9"}},
		{"9.0.96.10.in-addr.arpa.", dns.TypePTR, []string{"PTR web.ns.svc.cluster.local."}},
		{"example.com.", dns.TypeAXFR, []string{"REFUSED"}},
		{"example.com.", dns.TypeANY, []string{`HINFO "RFC8482" ""`}},
	} {
		for _, protocol := range []string{"udp", "tcp"} {
			m := n.ask(protocol, c.name, c.qtype)
			if diff := cmp.Diff(c.want, lines(m)); diff != "" {
				t.Errorf("%s %s %s: %s", protocol, c.name, dns.Type(c.qtype), diff)
			}
			if len(m.Answer) > 0 && m.Answer[0].Header().Name != c.name || m.Question[0].Name != c.name {
				t.Errorf("%s: the answer is about %v", c.name, m)
			}
		}
	}
	if m := n.ask("udp", "missing.ns.svc.cluster.local.", dns.TypeA); len(m.Ns) != 1 || m.Ns[0].Header().Rrtype != dns.TypeSOA || !m.Authoritative {
		t.Errorf("NXDOMAIN without an SOA: %v", m)
	}
	if m := n.ask("udp", "web.ns.svc.cluster.local.", dns.TypeA, func(m *dns.Msg) { m.SetEdns0(4096, true) }); m.IsEdns0() == nil || !m.IsEdns0().Do() {
		t.Errorf("no EDNS: %v", m)
	}
	if m := n.ask("udp", "web.ns.svc.cluster.local.", dns.TypeA, func(m *dns.Msg) { m.SetEdns0(4096, false).IsEdns0().SetVersion(1) }); m.Rcode != dns.RcodeBadVers {
		t.Errorf("EDNS of another version: %v", m)
	}
}

// TestOthersTakeTheAddress: without the label the address is free at once, and with it again the names are served.
func TestOthersTakeTheAddress(t *testing.T) {
	n := start(t, "127.0.53.2", nil)
	n.ask("udp", "web.ns.svc.cluster.local.", dns.TypeA)
	services := n.client.CoreV1().Services("kube-system")
	theirs := own("127.0.53.2")
	theirs.Labels = nil
	if _, err := services.Update(t.Context(), theirs, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	listener := listenSoon(t, n.address)
	if n.server.Network.Held().IsValid() {
		t.Error("the address is still held")
	}
	listener.Close()
	if _, err := services.Update(t.Context(), own("127.0.53.2"), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	n.ask("tcp", "web.ns.svc.cluster.local.", dns.TypeA)
}

// listenSoon waits until nobody else has the port.
func listenSoon(t *testing.T, address string) net.Listener {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		l, err := net.Listen("tcp", address)
		if err == nil {
			return l
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
		<-tick.C
	}
}

// TestLargeAnswers are cut by UDP, and whole by TCP.
func TestLargeAnswers(t *testing.T) {
	upstream(t, "127.0.53.9:15355", func(w dns.ResponseWriter, m *dns.Msg) {
		reply := new(dns.Msg).SetReply(m)
		for i := range 200 {
			reply.Answer = append(reply.Answer, &dns.A{Hdr: dns.RR_Header{Name: m.Question[0].Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 60}, A: net.IPv4(192, 0, 2, byte(i))})
		}
		if _, ok := w.RemoteAddr().(*net.UDPAddr); ok {
			reply.Truncate(dns.MinMsgSize)
		}
		_ = w.WriteMsg(reply)
	})
	corefile := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: clusterdns.ConfigMap},
		Data: map[string]string{clusterdns.ConfigKey: ". {\n forward . 127.0.53.9:15355\n}\n"}}
	n := start(t, "127.0.53.3", nil, corefile)
	n.ask("udp", "web.ns.svc.cluster.local.", dns.TypeA)
	for len(n.server.routes.Load().config.Blocks) == 0 { // until it is read
		n.ask("udp", "web.ns.svc.cluster.local.", dns.TypeA)
	}
	m := n.ask("udp", "large.example.", dns.TypeA)
	if m.Compress = true; !m.Truncated || m.Len() > dns.MinMsgSize {
		t.Errorf("%d bytes, truncated: %v", m.Len(), m.Truncated)
	}
	if m := n.ask("tcp", "large.example.", dns.TypeA); m.Truncated || len(m.Answer) != 200 {
		t.Errorf("%d answers, truncated: %v", len(m.Answer), m.Truncated)
	}
}

// TestLoopsAreFound: a server that asks us is asked no more.
func TestLoopsAreFound(t *testing.T) {
	client := dns.Client{Timeout: time.Second}
	upstream(t, "127.0.53.9:15356", func(w dns.ResponseWriter, m *dns.Msg) {
		got, _, err := client.Exchange(m, "127.0.53.4:15353")
		if err != nil {
			got = new(dns.Msg).SetRcode(m, dns.RcodeServerFailure)
		}
		_ = w.WriteMsg(got)
	})
	corefile := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: clusterdns.ConfigMap},
		Data: map[string]string{clusterdns.ConfigKey: ". {\n forward . 127.0.53.9:15356\n}\n"}}
	n := start(t, "127.0.53.4", nil, corefile)
	n.ask("udp", "web.ns.svc.cluster.local.", dns.TypeA)
	deadline := time.Now().Add(20 * time.Second)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !slices.Contains(n.server.routes.Load().excluded, netip.MustParseAddrPort("127.0.53.9:15356")) {
		if time.Now().After(deadline) {
			t.Fatalf("excluded: %v", n.server.routes.Load().excluded)
		}
		<-tick.C
	}
	if m := n.ask("udp", "example.com.", dns.TypeA); m.Rcode != dns.RcodeServerFailure {
		t.Errorf("%v", m)
	}
}
