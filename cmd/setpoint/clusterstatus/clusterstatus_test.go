package clusterstatus

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/internal/rotation"
	"github.com/setpoint-io/setpoint/internal/trust"
	"github.com/setpoint-io/setpoint/server/admin"
	"github.com/setpoint-io/setpoint/server/backups"
)

func TestWhyNoAnswer(t *testing.T) {
	post := func(err error) error { return &url.Error{Op: "Post", URL: "https://10.0.0.1:6443/x", Err: err} }
	dial := func(err error) error { return post(&net.OpError{Op: "dial", Net: "tcp", Err: err}) }
	for _, c := range []struct {
		err  error
		want string
	}{
		{dial(syscall.ECONNREFUSED), "connection refused"},
		{dial(syscall.EHOSTUNREACH), "no route to it"},
		{dial(&net.DNSError{Err: "no such host", Name: "server-1"}), "unknown host server-1"},
		{post(context.DeadlineExceeded), "no answer within 3s"},
		{post(x509.UnknownAuthorityError{}), "its certificate is not trusted"},
		{&admin.Refusal{StatusCode: http.StatusUnauthorized}, "it does not accept the credentials"},
		{&admin.Refusal{StatusCode: http.StatusForbidden}, "for administrators alone"},
		{post(fmt.Errorf("read: %w", errors.New("connection reset by peer"))), "connection reset by peer"},
	} {
		if got := whyNoAnswer(c.err); got != c.want {
			t.Errorf("%v: got %q, want %q", c.err, got, c.want)
		}
	}
}

// up is a server's answer with members, "!" before the name of one without a vote.
func up(name, leader string, term uint64, members ...string) Server {
	s := Server{Name: name, Status: &admin.ServerStatus{Name: name, Leader: leader, Term: term}}
	for _, m := range members {
		plain := strings.TrimPrefix(m, "!")
		s.Status.Servers = append(s.Status.Servers, admin.MemberStatus{Name: plain, Address: plain + ":1", Voter: plain == m})
	}
	return s
}

func down(name string) Server {
	return Server{Name: name, Error: "connection refused", address: name + ":1"}
}

func TestVerdict(t *testing.T) {
	three, five := []string{"a", "b", "c"}, []string{"a", "b", "c", "d", "e"}
	full := up("a", "a", 1, "a")
	full.Status.FullDisk = true
	now := time.Unix(1e9, 0)
	ending := up("a", "a", 1, "a")
	ending.Status.Certificates = []trust.Expiry{{Kind: trust.KindServer, Name: "a", Expires: now.Add(time.Hour)}}
	stuck := up("a", "a", 1, "a")
	stuck.Status.Held = []rotation.Held{{Kind: rotation.Serving}, {Kind: rotation.AccountKey, Problem: "no space left"}}
	unauthorized, forbidden := Server{Name: "a", Refused: http.StatusUnauthorized}, Server{Name: "a", Refused: http.StatusForbidden}
	late, inTime := up("a", "a", 1, "a"), up("a", "a", 1, "a")
	late.Status.Backups = &backups.State{Due: now.Add(-time.Hour), Last: now.Add(-25 * time.Hour).UTC()}
	inTime.Status.Backups = &backups.State{Due: now.Add(-time.Minute)}
	for _, c := range []struct {
		servers []Server
		want    string // "" before the text: nobody is needed
	}{
		{[]Server{up("a", "a", 1, "a")}, "the server is up"},
		{[]Server{up("a", "a", 1, three...), up("b", "a", 1, three...), up("c", "a", 1, three...)}, "all 3 servers are up"},
		{[]Server{up("a", "a", 1, three...), up("b", "a", 1, three...), down("c")}, "! 1 of 3 servers is down: one more stops writes"},
		{[]Server{up("a", "", 1, three...), down("b"), down("c")}, "! 2 of 3 servers are down: nothing can be written until 1 more answer"},
		{[]Server{up("a", "", 1, three...), up("b", "", 1, three...), down("c")},
			"! 1 of 3 servers is down, and the others have no leader: nothing can be written"},
		{[]Server{up("a", "", 1, three...), up("b", "", 1, three...), up("c", "", 1, three...)},
			"! the servers have no leader: nothing can be written"},
		{[]Server{up("a", "a", 1, five...), up("b", "a", 1, five...), up("c", "a", 1, five...), up("d", "a", 1, five...), down("e")},
			"! 1 of 5 servers is down: 2 more stop writes"},
		{[]Server{up("a", "a", 1, "a", "!b"), down("b")}, "! b, which has no vote yet, does not answer"},
		{[]Server{full}, "! a: its disk is full, and it falls behind"},
		{[]Server{ending}, "! a: the certificate of the server ends on 2001-09-09"},
		{[]Server{stuck}, "! a: it cannot follow the rotation of sa-key: no space left"},
		{[]Server{late}, "! a: no backup since 2001-09-08T00:46:40Z: see its log"},
		{[]Server{inTime}, "the server is up"},
		{[]Server{down("a")}, "! no server answers: nothing can be read or written by these addresses"},
		{[]Server{unauthorized, down("b")}, "! the servers do not accept the credentials: renew the kubeconfig"},
		{[]Server{forbidden, down("b")}, "! the servers tell administrators alone how they are"},
	} {
		got := judge(newest(c.servers), c.servers, now)
		text := got.Text
		if got.PersonNeeded {
			text = "! " + text
		}
		if text != c.want {
			t.Errorf("got %q, want %q", text, c.want)
		}
	}
}

// TestWhatEndsIsTold: each certificate once, by the newest that a server has seen, and what to do.
func TestWhatEndsIsTold(t *testing.T) {
	now := time.Unix(1e9, 0).UTC()
	day := 24 * time.Hour
	a, b := up("a", "a", 1, "a", "b"), up("b", "a", 1, "a", "b")
	a.Status.Certificates = []trust.Expiry{
		{Kind: trust.KindServer, Name: "a", Expires: now.Add(day)},
		{Name: "administrator", Expires: now.Add(2 * day)}, // of an older release
		{Kind: trust.KindAuthority, Expires: now.Add(3 * day)},
		{Kind: trust.KindFrontProxyAuthority, Expires: now.Add(171 * day)},
		{Kind: trust.KindNode, Name: "left", Expires: now.Add(day)},
		{Kind: trust.KindNode, Name: "off", Expires: now.Add(-day)},
		{Kind: trust.KindNode, Name: "fine", Expires: now.Add(31 * day)},
	}
	b.Status.Certificates = []trust.Expiry{
		{Kind: trust.KindServer, Name: "b", Expires: now.Add(300 * day)},
		{Kind: trust.KindAuthority, Expires: now.Add(3 * day)},
		{Kind: trust.KindNode, Name: "left", Expires: now.Add(300 * day)},
		{Kind: trust.KindBundle, Name: "apiservice/v1.x", Expires: now.Add(4 * day)},
	}
	var out strings.Builder
	printExpiry(&out, []Server{a, b}, now)
	want := `
WARNING: a: the certificate of the server ends at 2001-09-10T01:46:40Z: see the server's log

WARNING: a: the certificate of the administrator ends at 2001-09-11T01:46:40Z: see the server's log

WARNING: the certificate of the authority ends at 2001-09-12T01:46:40Z: run 'setpoint rotate ca'

WARNING: the certificate of the front proxy's authority ends at 2002-02-27T01:46:40Z: run 'setpoint rotate front-proxy'

WARNING: the certificate of the node off ended at 2001-09-08T01:46:40Z: see the agent's log on that machine

WARNING: the CA bundle of apiservice/v1.x ends at 2001-09-13T01:46:40Z: put one there that is valid for longer
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
	if got := judge(a.Status, []Server{a, b}, now); !got.PersonNeeded || !strings.Contains(got.Text, "; the certificate of the node off ended on 2001-09-08; the CA") {
		t.Errorf("%+v", got)
	}
}

// TestRotationsAreTold: how far each is as the server knows that is ahead, and which member is waited for.
func TestRotationsAreTold(t *testing.T) {
	now := time.Unix(1e9, 0).UTC()
	in := rotation.State{Kind: rotation.AccountKey, Generation: 2, Phase: rotation.Trust, From: "x", To: "y", Started: now, Since: now}
	in.KeepOld.Duration, in.HeldSince = time.Hour, &now
	a, b := up("a", "a", 1, "a", "b", "c"), up("b", "a", 1, "a", "b", "c")
	b.Status.Rotations = []rotation.State{in}
	in.Phase, in.Since = rotation.Use, now.Add(time.Second)
	a.Status.Rotations = []rotation.State{in}
	a.Status.Held = []rotation.Held{{Kind: rotation.AccountKey, Generation: 2, Uses: "y", Trusts: []string{"y", "x"}}}
	var out strings.Builder
	printRotations(&out, []Server{a, b, down("c")}, now)
	want := "\nsa-key: rotation 2 of 2001-09-09T01:46:40Z is in the phase use since 2001-09-09T01:46:41Z; it waits for " +
		"b: its release cannot rotate sa-key: upgrade it, c: connection refused; it lasts until 2001-09-09T02:46:40Z\n"
	if out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
	out.Reset()
	if printRotations(&out, []Server{up("a", "a", 1, "a")}, now); out.Len() > 0 {
		t.Errorf("nothing is rotated: %q", out.String())
	}
}

// TestMembersCount: a server that was removed is not shown though it answers as ever, and who joined is asked.
func TestMembersCount(t *testing.T) {
	answers := []Server{
		up("removed", "b", 7, "removed", "b", "c"), up("b", "b", 9, "b", "c", "d", "e"), down("c"), down("gone"),
	}
	answers[3].address = "e:1" // the kubeconfig has a name of its own for it
	best := newest(answers)
	servers, missing := membersOf(best, answers)
	var got []string
	for _, s := range servers {
		got = append(got, s.Name)
	}
	if diff := cmp.Diff([]string{"b", "c", "e"}, got); diff != "" {
		t.Error(diff)
	}
	if len(missing) != 1 || missing[0].Name != "d" {
		t.Errorf("to be asked: %v", missing)
	}
	if alone := newest([]Server{up("stale", "", 12, "stale"), up("b", "b", 9, "b")}); alone.Name != "b" {
		t.Errorf("a server without a leader is believed: %s", alone.Name)
	}
}

// TestTheBestIsAsked: who asks for the members asks neither the removed server nor one without a leader.
func TestTheBestIsAsked(t *testing.T) {
	configs := map[string]*rest.Config{}
	for name, s := range map[string]Server{
		"a-removed": up("removed", "removed", 7, "removed", "b"), "b": up("b", "b", 9, "b", "c"), "c-alone": up("c", "", 12, "b", "c"),
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(s.Status) }))
		t.Cleanup(server.Close)
		configs[name] = &rest.Config{Host: server.URL}
	}
	if got := Best(t.Context(), configs); got != configs["b"] {
		t.Errorf("asked: %v", got)
	}
	if got := Best(t.Context(), map[string]*rest.Config{"off": {Host: "http://127.0.0.1:1"}}); got != nil {
		t.Errorf("nobody answers, and %v is asked", got)
	}
}
