package install

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/setpoint-io/setpoint/deploy/systemd"
	"github.com/setpoint-io/setpoint/internal/trust"
)

// bench is a machine below a folder, and what was asked of its systemd.
type bench struct {
	*installer
	out   bytes.Buffer
	asked []string
	// state, status and line are what systemd says of each unit.
	state, pid, status, line, invocation string
	// resetFails: the unit is not loaded.
	resetFails bool
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{state: "active"}
	b.installer = &installer{files: folder(t.TempDir()), dataDir: "/var/lib/setpoint", out: &b.out, logger: slog.New(slog.DiscardHandler)}
	b.reset = os.RemoveAll // the pods of this machine are not the test's
	b.manager = &manager{run: func(_ context.Context, name string, args ...string) (string, error) {
		switch {
		case name == "journalctl":
			return b.line, nil
		case args[0] == "show" && slices.Contains(args, "--property=ExecMainStatus"):
			return b.status, nil
		case args[0] == "show" && slices.Contains(args, "--property=MainPID"):
			return b.pid, nil
		case args[0] == "show" && slices.Contains(args, "--property=InvocationID"):
			return b.invocation, nil
		case args[0] == "show":
			return b.state, nil
		}
		b.asked = append(b.asked, strings.Join(args, " "))
		if args[0] == "reset-failed" && b.resetFails {
			return "", errors.New("unit not loaded")
		}
		return "", nil
	}}
	return b
}

func (b *bench) mode(t *testing.T, path string) fs.FileMode {
	t.Helper()
	info, err := os.Stat(b.files.path(path))
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode().Perm()
}

func TestWhatIsPutWhere(t *testing.T) {
	b := newBench(t)
	for r, unit := range map[role]string{ofServer: systemd.Server, ofAgent: systemd.Agent} {
		env := &environment{lines: []string{"# mine", "SETPOINT_POD_CIDR=10.40.0.0/13"}}
		env.set(keyName, "a")
		for range 2 { // again is harmless
			if err := b.put(r, env); err != nil {
				t.Fatal(err)
			}
		}
		text, err := os.ReadFile(b.files.path("/etc/systemd/system/setpoint-" + string(r) + ".service"))
		if err != nil || string(text) != unit {
			t.Errorf("the unit of %s: %v\n%s", r, err, text)
		}
		file := "/etc/setpoint/" + string(r) + ".env"
		text, err = os.ReadFile(b.files.path(file))
		if err != nil || string(text) != "# mine\nSETPOINT_POD_CIDR=10.40.0.0/13\nSETPOINT_NAME=a\n" {
			t.Errorf("%s: %v\n%s", file, err, text)
		}
		if mode := b.mode(t, file); mode != 0o600 {
			t.Errorf("%s: %s", file, mode)
		}
	}
	if mode := b.mode(t, "/usr/local/bin/setpoint"); mode != 0o755 {
		t.Errorf("the binary: %s", mode)
	}
	if mode := b.mode(t, "/etc/setpoint"); mode != 0o700 {
		t.Errorf("the folder: %s", mode)
	}
	b.resetFails = true
	if started, err := b.start(t.Context(), ofServer); err != nil || !started {
		t.Errorf("started: %v, %v", started, err)
	}
	if want := []string{"daemon-reload", "enable setpoint-server.service", "reset-failed setpoint-server.service", "restart --no-block setpoint-server.service"}; !slices.Equal(b.asked, want) {
		t.Errorf("systemd was asked %q", b.asked)
	}
}

// TestATrustFolderElsewhere may be written by the server that runs as a unit.
func TestATrustFolderElsewhere(t *testing.T) {
	for dir, want := range map[string]string{
		"":              "-/etc/setpoint",
		"/etc/setpoint": "-/etc/setpoint",
		"/etc/my keys":  `-/etc/setpoint "-/etc/my keys"`,
	} {
		env := &environment{}
		env.set(keyTrust, dir)
		if text := ofServer.unitText(env); !strings.Contains(text, "\nReadWritePaths="+want+"\n") || strings.Count(text, "ReadWritePaths=") != 1 {
			t.Errorf("%q: %s", dir, text)
		}
	}
}

// TestWithoutSystemdItSaysWhatToRun, in a form that a shell takes.
func TestWithoutSystemdItSaysWhatToRun(t *testing.T) {
	b := newBench(t)
	b.manager = newManager(b.files)
	if started, err := b.start(t.Context(), ofAgent); started || err != nil {
		t.Errorf("%v, %v", started, err)
	}
	if !strings.Contains(b.out.String(), "\n(set -a; . /etc/setpoint/agent.env; exec /usr/local/bin/setpoint agent)\n") {
		t.Errorf("it says %q", &b.out)
	}
}

func TestEnvironment(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.env")
	if e, err := readEnvironment(path); err != nil || e.get("A") != "" {
		t.Errorf("there is no file: %v", err)
	}
	if err := os.WriteFile(path, []byte("A=1\n#B=2\n C='x y'\nA=3\n\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	e, err := readEnvironment(path)
	if err != nil {
		t.Fatal(err)
	}
	e.set("A", "4")
	e.set("B", "5")
	e.set("D", "")
	if e.get("A") != "3" || e.get("B") != "5" || e.get("C") != "x y" || e.text() != "A=1\n#B=2\n C='x y'\nA=3\nB=5\n" {
		t.Errorf("%q", e.text())
	}
}

func TestSettle(t *testing.T) {
	host, err := hostName()
	if err != nil {
		t.Fatal(err)
	}
	joins := serverOptions{flags: flags{join: []string{"a"}}, address: "b"}
	for name, c := range map[string]struct {
		before  []string
		o       serverOptions
		token   string
		want    map[string]string
		refused error
	}{
		"the first server": {
			o: serverOptions{address: "10.0.0.1"}, want: map[string]string{keyName: "server-" + host, keyAddress: "10.0.0.1:6443", keyTrust: "/etc/setpoint", keyJoin: ""},
		},
		"one that joins": {
			o: serverOptions{flags: flags{join: []string{"a", "b:1"}}, name: "x", address: "[fd00::1]"}, token: "t",
			want: map[string]string{keyName: "x", keyAddress: "[fd00::1]:6443", keyJoin: "a:6443,b:1"},
		},
		"again, without flags": {
			before: []string{"SETPOINT_NAME=x", "SETPOINT_ADVERTISE_ADDRESS=10.0.0.1:7000", "SETPOINT_JOIN=a:6443"},
			want:   map[string]string{keyName: "x", keyAddress: "10.0.0.1:7000", keyJoin: "a:6443"},
		},
		"one of a list, by hand": {
			before: []string{"SETPOINT_NAME=a", "SETPOINT_INITIAL_SERVERS=a=10.0.0.1:6443,b=10.0.0.2:6443"},
			want:   map[string]string{keyName: "a", keyAddress: "", keyJoin: ""},
		},
		"one with a name that was chosen before": {
			before: []string{"SETPOINT_NAME=x", "SETPOINT_POD_CIDR=10.40.0.0/13"}, o: joins, token: "t", want: map[string]string{keyName: "x", keyJoin: "a:6443"},
		},
		"one that was to join others":     {before: []string{"SETPOINT_NAME=x", "SETPOINT_JOIN=z:6443"}, o: joins, token: "t", refused: errElse},
		"one of a list that is to join":   {before: []string{"SETPOINT_NAME=a", "SETPOINT_INITIAL_SERVERS=a=b:1"}, o: joins, token: "t", refused: errListed},
		"a name alone, without a token":   {before: []string{"SETPOINT_NAME=x"}, o: joins, refused: errJoinToken},
		"a list of whom, without a token": {before: []string{"SETPOINT_JOIN=a:6443"}, o: joins, refused: errJoinToken},
		"another name":                    {before: []string{"SETPOINT_NAME=x"}, o: serverOptions{name: "y", address: "10.0.0.1"}, refused: errElse},
		"another address":                 {before: []string{"SETPOINT_NAME=x", "SETPOINT_ADVERTISE_ADDRESS=a:1"}, o: serverOptions{address: "b:1"}, refused: errElse},
		"without a token":                 {o: serverOptions{flags: flags{join: []string{"a"}}, address: "b"}, refused: errJoinToken},
		"a name that none":                {o: serverOptions{name: "X_", address: "10.0.0.1"}, refused: trust.ErrBadServer},
	} {
		t.Run(name, func(t *testing.T) {
			b, env := newBench(t), &environment{lines: c.before}
			if err := b.settle(env, &c.o, c.token); !errors.Is(err, c.refused) {
				t.Errorf("%v, want %v", err, c.refused)
			}
			for key, want := range c.want {
				if got := env.get(key); got != want {
					t.Errorf("%s is %q, want %q", key, got, want)
				}
			}
		})
	}
}

// TestWhatIsAnothersIsLeftAlone: keys of another cluster, and keys of which nobody knows what the machine is there.
func TestWhatIsAnothersIsLeftAlone(t *testing.T) {
	b := newBench(t)
	cluster, err := trust.InitCluster(b.files.path(configFolder), []trust.Server{{Name: "x", Endpoint: "a:1"}}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	token := func(pin string) string { return "server." + pin + "." + strings.Repeat("a", 22) }
	own, other := token(cluster.CA.Pin()), token(strings.Repeat("0", 64))
	o := serverOptions{flags: flags{join: []string{"a"}}, address: "b"}
	if err := b.settle(&environment{}, &o, other); !errors.Is(err, errOther) {
		t.Errorf("another cluster's token: %v", err)
	}
	if err := b.settle(&environment{}, &o, own); !errors.Is(err, errKeysAlone) {
		t.Errorf("keys alone: %v", err)
	}
	env := &environment{lines: []string{"SETPOINT_NAME=x", "SETPOINT_ADVERTISE_ADDRESS=b:6443"}}
	if err := b.settle(env, &o, own); err != nil || env.get(keyJoin) != "" {
		t.Errorf("the same cluster: %v, joins %q", err, env.get(keyJoin))
	}
	if err := b.settle(env, &o, ""); !errors.Is(err, errServer) {
		t.Errorf("a server that is to join who knows whom: %v", err)
	}
	requestPEM, keyPEM := nodeRequest(t)
	certPEM, err := cluster.CA.SignNode(requestPEM, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := sameClusterAsNode(dir, other); err != nil {
		t.Errorf("no node yet: %v", err)
	}
	node, err := trust.NewNode(certPEM, nil, keyPEM, cluster.CA.CertPEM(), cluster.GossipKeys.Told())
	if err != nil {
		t.Fatal(err)
	}
	if err := node.Save(dir); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(sameClusterAsNode(dir, own)); err != nil {
		t.Errorf("the same cluster: %v", err)
	}
	if err := sameClusterAsNode(dir, other); !errors.Is(err, errOther) {
		t.Errorf("a node of another cluster: %v", err)
	}
	if err := os.Remove(filepath.Join(dir, "pki", "node.crt")); err != nil {
		t.Fatal(err)
	}
	if key, err := trust.NodeKey(dir); err != nil || !bytes.Equal(key, keyPEM) || sameClusterAsNode(dir, other) != nil {
		t.Errorf("what errOtherNode says does not help: %v", err)
	}
}

// TestKeysThatAreWithTheData stay the server's: other ones would be of another cluster than its data.
func TestKeysThatAreWithTheData(t *testing.T) {
	for dir, lines := range map[string][]string{"/var/lib/setpoint": nil, "/srv/data": {"SETPOINT_DATA_DIR=/srv/data"}} {
		b, env := newBench(t), &environment{lines: append(lines, "SETPOINT_ADVERTISE_ADDRESS=b:6443")}
		if _, err := trust.InitCluster(b.files.path(dir), []trust.Server{{Name: "x", Endpoint: "b:6443"}}, time.Now()); err != nil {
			t.Fatal(err)
		}
		if err := b.settle(env, &serverOptions{}, ""); !errors.Is(err, errKeysAlone) {
			t.Errorf("%s, as whom: %v", dir, err)
		}
		env.set(keyName, "x")
		if err := b.settle(env, &serverOptions{}, ""); err != nil || env.get(keyTrust) != "" || !b.hasKeys(env) {
			t.Errorf("%s: %v, the trust folder is %q", dir, err, env.get(keyTrust))
		}
	}
}

// TestAJoinThatDidNotEnd is gone on with by the same line: the keys were there, and nothing was written yet.
func TestAJoinThatDidNotEnd(t *testing.T) {
	b := newBench(t)
	if _, err := trust.InitCluster(b.files.path(configFolder), []trust.Server{{Name: "x", Endpoint: "b:6443"}}, time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(b.files.path(configFolder+"/pki/joining"), []byte("x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := &environment{}
	if err := b.settle(env, &serverOptions{flags: flags{join: []string{"a"}}, address: "b"}, ""); err != nil {
		t.Fatal(err)
	}
	if env.get(keyName) != "x" || env.get(keyJoin) != "a:6443" || env.get(keyAddress) != "b:6443" {
		t.Errorf("%s", env.text())
	}
}

func nodeRequest(t *testing.T) (*trust.NodeRequest, []byte) {
	t.Helper()
	keyPEM, err := trust.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	requestPEM, err := trust.NewNodeRequest("n", keyPEM)
	if err != nil {
		t.Fatal(err)
	}
	request, err := trust.ParseNodeRequest(requestPEM, "n")
	if err != nil {
		t.Fatal(err)
	}
	return request, keyPEM
}

// TestAPortThatIsTaken is told of before anything is changed, unless what was installed has it.
func TestAPortThatIsTaken(t *testing.T) {
	listener, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	b := newBench(t)
	b.pid = "7" // active, activating, reloading or deactivating
	if err := b.portIsFree(t.Context(), ofServer, listener.Addr().String(), "--x"); err != nil {
		t.Errorf("its own: %v", err)
	}
	b.pid = "0" // between two starts, too
	if err := b.portIsFree(t.Context(), ofServer, listener.Addr().String(), "--x"); err == nil || !strings.Contains(err.Error(), "choose another with --x") {
		t.Errorf("another's: %v", err)
	}
	b.pid = "" // systemd does not know the unit
	if err := b.portIsFree(t.Context(), ofServer, listener.Addr().String(), "--x"); err == nil {
		t.Error("another's, where there is no unit")
	}
}

func TestOnlyAddress(t *testing.T) {
	for name, c := range map[string]struct {
		addresses []string
		want      string
	}{
		"one":         {[]string{"127.0.0.1/8", "::1/128", "10.0.0.1/24", "fe80::1/64"}, "10.0.0.1"},
		"of IPv6":     {[]string{"127.0.0.1/8", "fd00::1/64", "fe80::1/64"}, "fd00::1"},
		"of both":     {[]string{"10.0.0.1/24", "fd00::1/64"}, "10.0.0.1"},
		"two":         {[]string{"10.0.0.1/24", "10.1.0.1/24"}, ""},
		"two of IPv6": {[]string{"fd00::1/64", "fd01::1/64"}, ""},
		"none":        {[]string{"127.0.0.1/8"}, ""},
	} {
		var addresses []net.Addr
		for _, text := range c.addresses {
			ip, network, err := net.ParseCIDR(text)
			if err != nil {
				t.Fatal(err)
			}
			addresses = append(addresses, &net.IPNet{IP: ip, Mask: network.Mask})
		}
		if got, err := onlyAddress(addresses); got != c.want || (err == nil) == (c.want == "") {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// TestWaiting: it says why, now and then; it ends when all is ready, when the unit has given up, and after its time.
func TestWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		w := &waiting{what: "x", unit: "u", manager: b.manager, timeout: time.Minute, out: &b.out}
		not := errors.New("not yet")
		start := time.Now()
		if err := w.await(t.Context(), func(context.Context) error {
			if time.Since(start) < 12*time.Second {
				return not
			}
			return nil
		}); err != nil || strings.Count(b.out.String(), "waiting for x: not yet\n") != 2 {
			t.Errorf("%v: %s", err, &b.out)
		}
		if err := w.await(t.Context(), func(context.Context) error { return not }); err == nil ||
			err.Error() != "x: it is not ready after 1m0s: not yet; 'journalctl -u u' has more" {
			t.Errorf("a unit that says nothing: %v", err)
		}
		b.line = "setpoint: the port is taken"
		if err := w.await(t.Context(), func(context.Context) error { return not }); err == nil ||
			err.Error() != "x: it is not ready after 1m0s: setpoint: the port is taken; 'journalctl -u u' has more" {
			t.Error(err)
		}
		b.state, start = "failed", time.Now()
		if err := w.await(t.Context(), func(context.Context) error { return not }); !errors.Is(err, errGaveUp) || time.Since(start) > time.Second {
			t.Errorf("after %s: %v", time.Since(start), err)
		}
		b.state, b.status, start = "activating", "2", time.Now()
		if err := w.await(t.Context(), func(context.Context) error { return not }); !errors.Is(err, errEnded) || time.Since(start) > time.Second {
			t.Errorf("a wrong flag, after %s: %v", time.Since(start), err)
		}
		b.status = "1"
		if err := w.await(t.Context(), func(context.Context) error { return not }); errors.Is(err, errEnded) || time.Since(start) < time.Minute {
			t.Errorf("what another start may mend, after %s: %v", time.Since(start), err)
		}
	})
}

// TestTheRunBefore is not judged: it answers until it has ended, and how it ended is none of the new one.
func TestTheRunBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.invocation, b.state, b.status = "old", "activating", "2"
		if _, err := b.start(t.Context(), ofServer); err != nil {
			t.Fatal(err)
		}
		w := &waiting{what: "x", unit: ofServer.unit(), manager: b.manager, timeout: time.Minute, out: &b.out}
		asked := 0
		ask := func(context.Context) error { asked++; return nil }
		if err := w.await(t.Context(), ask); err == nil || asked > 0 || !strings.Contains(err.Error(), errBefore.Error()) {
			t.Errorf("asked %d times of the run before: %v", asked, err)
		}
		b.invocation = "new"
		if err := w.await(t.Context(), ask); err != nil || asked != 1 {
			t.Errorf("asked %d times: %v", asked, err)
		}
	})
}

// TestUninstallKeepsWhatIsNotItsOwn: keys, settings and data stay.
func TestUninstallKeepsWhatIsNotItsOwn(t *testing.T) {
	b := newBench(t)
	env := &environment{}
	env.set(keyName, "server-a")
	if err := b.put(ofServer, env); err != nil {
		t.Fatal(err)
	}
	never := func(string) error { t.Error("it asks"); return nil }
	for range 2 { // again is harmless
		if err := b.uninstall(t.Context(), false, never); err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{"disable --now setpoint-server.service", "daemon-reload"}; !slices.Equal(b.asked, want) {
		t.Errorf("systemd was asked %q", b.asked)
	}
	if exists(b.files.path(binaryFile)) || exists(b.files.path(unitFolder+"/setpoint-server.service")) || !exists(b.files.path("/etc/setpoint/server.env")) {
		t.Error("it left what is its own, or took what is not")
	}
	if !strings.Contains(b.out.String(), "setpoint cluster remove server-a") || !strings.Contains(b.out.String(), "uninstall --purge") {
		t.Errorf("it says %s", &b.out)
	}
	if err := b.uninstall(t.Context(), true, func(what string) error {
		if !strings.Contains(what, "This deletes /var/lib/setpoint, ") {
			t.Errorf("it says %s", what)
		}
		return errNotConfirmed
	}); !errors.Is(err, errNotConfirmed) || !exists(b.files.path("/etc/setpoint/server.env")) {
		t.Errorf("it was not confirmed: %v", err)
	}
}

// TestTokensAreRead from where they are: on the line, in a file, or at standard input, of which the first line counts.
func TestTokensAreRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("of-a-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		f           flags
		stdin, want string
	}{
		{flags{token: "of-the-line"}, "x", "of-the-line"},
		{flags{tokenFile: file}, "x", "of-a-file"},
		{flags{tokenFile: "-"}, "typed\nmore\n", "typed"},
		{flags{tokenFile: "-"}, "piped", "piped"},
		{flags{}, "x", ""},
	} {
		if got, err := c.f.readToken(strings.NewReader(c.stdin)); err != nil || got != c.want {
			t.Errorf("%+v: %q, %v, want %q", c.f, got, err, c.want)
		}
	}
}

func TestFlags(t *testing.T) {
	for name, c := range map[string]struct {
		f    flags
		want error
	}{
		"none":             {flags{}, nil},
		"to join":          {flags{join: []string{"a"}, token: "t"}, nil},
		"two tokens":       {flags{join: []string{"a"}, token: "t", tokenFile: "f"}, errBothTokens},
		"a token alone":    {flags{token: "t"}, errTokenAlone},
		"a file alone":     {flags{tokenFile: "f"}, errTokenAlone},
		"join without one": {flags{join: []string{"a"}}, nil}, // of what was installed before
	} {
		if err := c.f.validate(); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
