package corefile

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// kubeadm's file, as clusters have it.
const kubeadm = `.:53 {
    errors
    health {
       lameduck 5s
    }
    ready
    kubernetes cluster.local in-addr.arpa ip6.arpa {
       pods insecure
       fallthrough in-addr.arpa ip6.arpa
       ttl 30
    }
    prometheus :9153
    forward . /etc/resolv.conf {
       max_concurrent 1000
    }
    cache 30
    loop
    reload
    loadbalance
}
`

func TestWhatIsHonoured(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []Block
	}{
		"kubeadm": {kubeadm, []Block{{Zones: []string{"."}, CacheTTLMax: 30 * time.Second, Forwards: []Forward{{From: []string{"."}, Files: []string{"/etc/resolv.conf"}}}}}},
		"a zone of others": {". {\n}\nCorp.example:53, lab.example {\n forward . 192.0.2.1 dns://192.0.2.2:5353 {\n force_tcp\n except a.corp.example\n }\n log\n}", []Block{
			{Zones: []string{"."}},
			{Zones: []string{"corp.example.", "lab.example."}, Log: true, Forwards: []Forward{{
				From: []string{"."}, To: []string{"192.0.2.1:53", "192.0.2.2:5353"}, ForceTCP: true, Except: []string{"a.corp.example."},
			}}},
		}},
		"hosts": {`. { # all
	hosts {
		192.0.2.7 printer.corp "Scanner.corp"
		ttl 60
		fallthrough
	} }`, []Block{{Zones: []string{"."}, Hosts: &Hosts{TTL: 60, Fallthrough: true, Addresses: map[string][]netip.Addr{
			"printer.corp.": {netip.MustParseAddr("192.0.2.7")}, "scanner.corp.": {netip.MustParseAddr("192.0.2.7")},
		}}}}},
		"empty": {"", nil},
	} {
		got := Parse(c.text)
		if diff := cmp.Diff(c.want, got.Blocks, cmpopts.EquateEmpty(), cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" || len(got.Problems) > 0 {
			t.Errorf("%s: %s %v", name, diff, got.Problems)
		}
	}
}

func TestWhatIsTold(t *testing.T) {
	for text, want := range map[string]string{
		". {\n autopath @kubernetes\n}":                           `line 2: "autopath" is not supported`,
		". {\n kubernetes cluster.local {\n pods verified\n }\n}": "line 3: kubernetes: pods: only insecure is supported",
		". {\n forward . tls://192.0.2.1\n}":                      `line 2: forward: "tls://192.0.2.1": want an address, with a port or not`,
		". {\n forward .\n}":                                      "line 2: forward: want a zone and servers",
		". {\n hosts /etc/hosts\n}":                               "line 2: hosts: files and zones are not supported: names stand in the block",
		". {\n cache ten\n}":                                      "line 2: cache: want seconds from 1 to 65535, and no zones",
		". {\n rewrite type A AAAA\n}":                            "line 2: rewrite: only names can be rewritten",
		". {\n rewrite name regex ( x\n}":                         `line 2: rewrite: "(" is no pattern`,
		"tls://. {\n}":                                            `line 1: "tls://.": only plain DNS is served`,
		".:5353 {\n}":                                             `line 1: ".:5353": only port 53 is served`,
		"(common) {\n}":                                           "line 1: snippets are not supported",
		". {":                                                     "line 1: the block has no end",
		"}":                                                       `line 1: "": want the zones of a server block and {`,
		". {\n template IN A {\n match x {\n y\n }\n }\n log\n}": `line 2: "template" is not supported`,
		strings.Repeat("#", bytesMax+1):                          "line 1: the file is larger than 262144 bytes",
	} {
		got := Parse(text)
		if len(got.Problems) == 0 || got.Problems[0].String() != want {
			t.Errorf("%.60q: %v, want %s", text, got.Problems, want)
		}
	}
}

func TestRewritten(t *testing.T) {
	for rule, names := range map[string]map[string]string{
		"name old.example new.example":                          {"old.example.": "new.example.", "x.old.example.": "x.old.example."},
		"name suffix .old.example .new.example":                 {"x.old.example.": "x.new.example.", "old.example.": "old.example."},
		"name prefix a- b-":                                     {"a-x.": "b-x.", "x.": "x."},
		"name substring old new":                                {"a.old.b.": "a.new.b."},
		`name regex ^(.*)\.old\.$ {1}.new`:                      {"x.old.": "x.new.", "x.": "x."},
		"stop name exact a b answer auto\nrewrite name b c":     {"a.": "b.", "b.": "c."},
		"continue name exact a b\nrewrite name b c":             {"a.": "c."},
		"name substring a " + strings.Repeat("long.", 30) + "a": {"a.a.a.": "a.a.a."},
	} {
		c := Parse(". {\nrewrite " + rule + "\n}")
		for name, want := range names {
			if got := c.For(name).Rewritten(name); got != want || len(c.Problems) > 0 {
				t.Errorf("%s: %s becomes %s, want %s; %v", rule, name, got, want, c.Problems)
			}
		}
	}
}

func TestTheLongestZoneCounts(t *testing.T) {
	c := Parse("example {\n}\nb.example {\n}\n")
	for name, want := range map[string]string{"example.": "example.", "x.a.example.": "example.", "x.b.example.": "b.example.", "ab.example.": "example."} {
		if b := c.For(name); b == nil || b.Zones[0] != want {
			t.Errorf("%s: %v", name, b)
		}
	}
	if b := c.For("other."); b != nil {
		t.Errorf("%v", b)
	}
}

// FuzzParse: any text gives a Config of which names can be asked.
func FuzzParse(f *testing.F) {
	for _, text := range []string{kubeadm, ". {", "}}}{{{", `"`, "a {\n rewrite name regex (.*) {1}{1}{9}\n}", ". { hosts { ::1 x } }"} {
		f.Add(text, "a.example.")
	}
	f.Fuzz(func(t *testing.T, text, name string) {
		c := Parse(text)
		if len(c.Problems) > problemsMax || len(c.Blocks) > blocksMax {
			t.Errorf("%d problems, %d blocks", len(c.Problems), len(c.Blocks))
		}
		if b := c.For(name); b != nil {
			if got := b.Rewritten(name); len(got) > max(nameMax, len(name)) {
				t.Errorf("%q becomes %q", name, got)
			}
		}
	})
}
