package revocation

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

var at = time.Date(2026, 11, 29, 3, 0, 0, 0, time.UTC)

var someKey = strings.Repeat("0a", 32)

// TestWhoClosesWaitsForTheEnd: a handler that has returned must not be touched any more.
func TestWhoClosesWaitsForTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, release := &Judge{}, make(chan struct{})
		closed := j.Opened(Identity{User: "u"}, func() { <-release })
		go j.Use(NewList([]Entry{{Target: Target{Kind: User, Name: "u"}}}))
		synctest.Wait()
		done := false
		go func() { closed(); done = true }()
		synctest.Wait()
		if done {
			t.Error("it was closed while its end went on")
		}
		close(release)
		synctest.Wait()
		if !done {
			t.Error("it is not closed")
		}
	})
}

func entries(t *testing.T, texts ...string) (all []Entry) {
	t.Helper()
	for _, text := range texts {
		text, key, _ := strings.Cut(text, " ")
		target, err := ParseTarget(text)
		target.Key = key
		if err = errors.Join(err, target.Validate()); err != nil {
			t.Fatal(err)
		}
		all = append(all, Entry{target, at})
	}
	return all
}

func TestTargets(t *testing.T) {
	for text, problem := range map[string]string{
		"node/worker-3":                              "",
		"server/server-1":                            "",
		"user/jane@example.com":                      "",
		"user/system:serviceaccount:default:web":     "",
		"user/https://issuer.example.com#jane":       "",
		"token/abcdef":                               "",
		"token/0c7e5b9a-5c4e-4f27-9b0e-7b3a6d7f1d11": "",
		"":                                 "want node/NAME",
		"worker-3":                         "a name is missing",
		"node/":                            "a name is missing",
		"pod/web":                          "unknown kind",
		"node/Worker_3":                    "RFC 1123",
		"server/a b":                       "RFC 1123",
		"user/system:node:a":               "that is node/a",
		"user/system:setpoint:server:a":    "that is server/a",
		"user/system:anonymous":            "--authentication-config",
		"user/a\nb":                        "control characters",
		"user/" + strings.Repeat("a", 254): "more than 253 bytes",
		"token/a":                          "6 to 64",
		"token/abcdef.0123456789abcdef":    "6 to 64",
	} {
		_, err := ParseTarget(text)
		if got := fmt.Sprint(err); (err == nil) != (problem == "") || !strings.Contains(got, problem) && problem != "" || err != nil && !errors.Is(err, ErrTarget) {
			t.Errorf("%q: %v, want %q", text, err, problem)
		}
	}
	for _, bad := range []Target{{Kind: Node, Name: "a", Key: someKey}, {Kind: User, Name: "a", Key: "AB"}} {
		if err := bad.Validate(); !errors.Is(err, ErrTarget) {
			t.Errorf("%v: %v", bad, err)
		}
	}
}

// TestStored: what is written is read, and what is damaged is left out and told of.
func TestStored(t *testing.T) {
	want := entries(t, "node/worker-3", "token/abcdef", "user/jane", "user/jane "+someKey)
	data := map[string]string{}
	for _, e := range want {
		data[e.DataKey()] = e.Text()
	}
	if len(data) != len(want) {
		t.Errorf("%d keys", len(data))
	}
	got, err := Read(data)
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v, %v", got, err)
	}
	for name, damage := range map[string][2]string{
		"another's key": {want[0].DataKey() + "x", want[0].Text()},
		"no JSON":       {"node.x", "worker"},
		"no target":     {"node.x", `{"target":"worker"}`},
		"a bad key":     {"node.x", `{"target":"node/a","key":"b"}`},
		"too long":      {"node.x", want[0].Text() + strings.Repeat(" ", entryBytesMax)},
	} {
		data := map[string]string{damage[0]: damage[1], want[1].DataKey(): want[1].Text()}
		if got, err := Read(data); err == nil || len(got) != 1 {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	for i := range EntriesMax + 1 {
		e := Entry{Target{Kind: Node, Name: fmt.Sprint("n", i)}, at}
		data[e.DataKey()] = e.Text()
	}
	if _, err := Read(data); !errors.Is(err, ErrFull) {
		t.Error(err)
	}
}

// TestTheLongestListFits into an object, of 1 MiB.
func TestTheLongestListFits(t *testing.T) {
	e := Entry{Target{Kind: User, Name: strings.Repeat("\"", nameBytesMax), Key: someKey}, at}
	if bytes := EntriesMax * (len(e.DataKey()) + len(e.Text())); bytes > 900<<10 || len(e.Text()) > entryBytesMax {
		t.Errorf("%d bytes, each up to %d", bytes, len(e.Text()))
	}
}

func TestWhoIsRevoked(t *testing.T) {
	j := &Judge{}
	if err := j.Revoked(Identity{}); err != nil || (*Judge)(nil).Revoked(Identity{}) != nil {
		t.Error(err)
	}
	j.Use(NewList(entries(t, "node/a", "server/s", "user/jane", "user/joe "+someKey, "token/abcdef")))
	for who, want := range map[Identity]string{
		{User: "system:node:a"}:            "node/a was revoked on 2026-11-29T03:00:00Z: ask an administrator for a new token, and reset the machine",
		{User: "system:setpoint:server:s"}: "server/s was revoked on 2026-11-29T03:00:00Z: ask an administrator, and reset the machine",
		{User: "jane", Key: "other"}:       "user/jane was revoked on 2026-11-29T03:00:00Z: ask an administrator",
		{User: "joe", Key: someKey}:        "user/joe with the key " + someKey + " was revoked on 2026-11-29T03:00:00Z: ask an administrator",
		{User: "x", Key: someKey}:          "user/joe with the key " + someKey + " was revoked on 2026-11-29T03:00:00Z: ask an administrator",
		{User: "x", Token: "abcdef"}:       "token/abcdef was revoked on 2026-11-29T03:00:00Z: ask an administrator for another",
		{User: "joe", Key: "other"}:        "<nil>",
		{User: "a"}:                        "<nil>",
		{User: "system:node:b"}:            "<nil>",
		{}:                                 "<nil>",
	} {
		if got := fmt.Sprint(j.Revoked(who)); got != want {
			t.Errorf("%v: %s", who, got)
		}
	}
}

// TestWhatIsOpenEnds, once, whichever comes first; that of others stays.
func TestWhatIsOpenEnds(t *testing.T) {
	j := &Judge{}
	ended := map[string]int{}
	open := func(user, name string) func() {
		return j.Opened(Identity{User: user}, func() { ended[name]++ })
	}
	open("jane", "first")
	open("joe", "of another")
	open("jane", "closed")()
	j.Use(NewList(entries(t, "user/jane")))
	open("jane", "later")
	j.Use(NewList(entries(t, "user/jane")))
	if got := fmt.Sprint(ended); got != "map[first:1 later:1]" || len(j.open) != 1 {
		t.Errorf("ended: %s, open: %d", got, len(j.open))
	}
	ours, theirs := net.Pipe()
	defer theirs.Close()
	watched := j.Watched(ours, Identity{User: "joe"})
	j.Use(NewList(entries(t, "user/joe")))
	if _, err := theirs.Read(make([]byte, 1)); err == nil || ended["of another"] != 1 {
		t.Errorf("%v, %v", err, ended)
	}
	if err := watched.Close(); err != nil || len(j.open) != 0 {
		t.Errorf("%v, open: %d", err, len(j.open))
	}
}

// TestItIsToldNowAndThen how often somebody who is revoked tries.
func TestItIsToldNowAndThen(t *testing.T) {
	j := &Judge{}
	j.Use(NewList(entries(t, "user/jane")))
	told := ""
	for i := range 5 {
		err := j.Revoked(Identity{User: "jane"}).(*Error)
		skipped, tell := err.Tell(at.Add(time.Duration(i) * tellAgainAfter / 2))
		told += fmt.Sprint(skipped, tell, " ")
	}
	if told != "0 true 0 false 1 true 0 false 1 true " {
		t.Error(told)
	}
}
