package testlink

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestMain makes the test binary a test server that begins sessions and does nothing else.
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == "testserver" {
		fmt.Fprintln(os.Stderr, serve(os.Args[3]))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// serve notes each start in a file beside the socket. A folder with a file named fails has a server that does not start.
func serve(socket string) error {
	beside := func(name string) string { return filepath.Join(filepath.Dir(socket), name) }
	if isFile(beside("fails")) {
		return errors.New("it has no port")
	}
	starts, err := os.OpenFile(beside("starts"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = fmt.Fprintln(starts, os.Getpid())
	}
	if err != nil {
		return err
	}
	_ = os.Remove(socket)
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	http.HandleFunc("/version", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(Answer{Protocol: 7, Version: "9.9.9"})
	})
	http.HandleFunc("/session", func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewEncoder(w).Encode(Answer{Session: "session-1"})
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	return http.Serve(listener, nil)
}

// testServer is the server of this binary, in a folder of its own; what was started is killed with the test.
func testServer(t *testing.T) server {
	t.Helper()
	folder, err := os.MkdirTemp("", "t")
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s, err := serverOf(folder, self)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		kill(t, s)
		os.RemoveAll(folder)
	})
	return s
}

// started are the processes that were started.
func started(t *testing.T, s server) (pids []int) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(filepath.Dir(s.socket), "starts"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	for _, field := range strings.Fields(string(text)) {
		pid := 0
		if _, err := fmt.Sscan(field, &pid); err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}

func kill(t *testing.T, s server) {
	t.Helper()
	for _, pid := range started(t, s) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
		_, _ = syscall.Wait4(pid, nil, 0, nil)
	}
}

// TestOneStart: of many who find no server one starts it, and the others wait for it.
func TestOneStart(t *testing.T) {
	s := testServer(t)
	ended := make(chan error, 10)
	for range cap(ended) {
		go func() {
			session, err := s.session(t.Context())
			if err == nil {
				err = session.conn.Close()
			}
			ended <- err
		}()
	}
	for range cap(ended) {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	if pids := started(t, s); len(pids) != 1 {
		t.Errorf("%d servers were started", len(pids))
	}
}

// TestKilled: a session notices that its server was killed, and what the server left keeps nobody from starting another one.
func TestKilled(t *testing.T) {
	s := testServer(t)
	session, err := s.session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if session.Name != "session-1" || session.over() || session.Gone() {
		t.Errorf("the session %q is over", session.Name)
	}
	kill(t, s)
	if !session.Gone() || !session.over() {
		t.Error("the session goes on without its server")
	}
	if err := session.Explain(errors.New("EOF")); !strings.Contains(err.Error(), "it was killed or crashed ("+s.log) {
		t.Error(err)
	}
	if info, err := os.Stat(s.socket); err != nil || info.Mode().Type() != os.ModeSocket {
		t.Fatalf("the killed server left no socket: %v", err)
	}
	if _, err := s.session(t.Context()); err != nil {
		t.Error(err)
	}
	if pids := started(t, s); len(pids) != 2 {
		t.Errorf("%d servers were started", len(pids))
	}
}

// TestNoStart: what a server said last that did not start is told.
func TestNoStart(t *testing.T) {
	s := testServer(t)
	if err := os.WriteFile(filepath.Join(filepath.Dir(s.socket), "fails"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.session(t.Context()); err == nil || !strings.Contains(err.Error(), "testserver ended at once: it has no port") {
		t.Error(err)
	}
}

// TestOtherVersion: a binary of another version is refused, with what to do.
func TestOtherVersion(t *testing.T) {
	s := testServer(t)
	session, err := s.session(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	err = session.fits(t.Context(), s.binary)
	if err == nil || !strings.Contains(err.Error(), "is setpoint 9.9.9 with requests of version 7, and this test wants") {
		t.Error(err)
	}
}

// TestIdentity: another build of the same path has another server.
func TestIdentity(t *testing.T) {
	path := filepath.Join(t.TempDir(), "setpoint")
	var keys []string
	for _, content := range []string{"one", "another"} {
		if err := os.WriteFile(path, []byte(content), 0o700); err != nil {
			t.Fatal(err)
		}
		key, err := identity(path)
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, key)
	}
	if keys[0] == keys[1] || len(keys[0]+".sock") != len(longest) {
		t.Error(keys)
	}
}

// TestFolder: it is private, short, and nobody else's.
func TestFolder(t *testing.T) {
	dir, err := os.MkdirTemp("", "f")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	t.Setenv("XDG_RUNTIME_DIR", dir)
	folder, err := Folder()
	info, statErr := os.Stat(folder)
	if err != nil || statErr != nil || filepath.Dir(folder) != dir || info.Mode().Perm() != 0o700 {
		t.Errorf("%s: %v, %v", folder, err, statErr)
	}
	if err := os.Chmod(folder, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := Folder(); err == nil || !strings.Contains(err.Error(), "is not a folder of this user alone (mode 0700)") {
		t.Errorf("others may write there: %v", err)
	}
	if err := errors.Join(os.Remove(folder), os.Symlink(t.TempDir(), folder)); err != nil {
		t.Fatal(err)
	}
	if _, err := Folder(); err == nil {
		t.Error("it is a link of somebody's")
	}
	long := filepath.Join(dir, strings.Repeat("a", 100))
	if err := os.Mkdir(long, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_RUNTIME_DIR", long)
	t.Setenv("TMPDIR", long)
	if folder, err := Folder(); err != nil || filepath.Dir(folder) != "/tmp" {
		t.Errorf("with long paths: %s, %v", folder, err)
	}
}

// goSays puts a go command into PATH that notes that it was asked, and a module without local copies around the test.
func goSays(t *testing.T, script string) (asked func() int) {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("PATH", dir+":/bin:/usr/bin")
	t.Setenv(BinaryVariable, "")
	t.Setenv("GOWORK", "")
	t.Chdir(dir)
	text := "#!/bin/sh\necho asked >>" + dir + "/asked\n" + script
	if err := errors.Join(os.WriteFile("go", []byte(text), 0o700), os.WriteFile("go.mod", []byte("module example.com/shop\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	return func() int {
		text, _ := os.ReadFile(filepath.Join(dir, "asked"))
		return strings.Count(string(text), "asked")
	}
}

// TestBinary: the variable, the module's tool, which is asked for once, what is in PATH, and what the go command builds.
func TestBinary(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	noTool := "[ $1 = run ] || { echo 'go: no such tool \"setpoint\"' >&2; exit 2; }\n"
	for name, tc := range map[string]struct {
		script, want, says string
		prepare            func(t *testing.T)
	}{
		"variable": {"exit 1", self, "", func(t *testing.T) { t.Setenv(BinaryVariable, self) }},
		"no file": {"exit 1", "", "SETPOINT_TEST_BINARY names /nowhere/setpoint, which cannot be run: build it, or unset the variable", func(t *testing.T) {
			t.Setenv(BinaryVariable, "/nowhere/setpoint")
		}},
		"tool":       {"echo " + self, self, "", nil},
		"no build":   {"echo 'main.go:1: it does not compile' >&2; exit 1", "", "go tool -n setpoint: exit status 1: main.go:1: it does not compile", nil},
		"built":      {noTool + "echo " + self, self, "", nil},
		"no binary":  {noTool + "echo 'no required module provides package' >&2; exit 1", "", "there is no setpoint binary for tests: go get -tool " + commandPath, nil},
		"in PATH":    {noTool, "setpoint", "", func(t *testing.T) { must(t, os.Symlink(self, "setpoint")) }},
		"no go tool": {"exit 127", "", "go tool -n setpoint: exit status 127", nil},
	} {
		t.Run(name, func(t *testing.T) {
			goSays(t, tc.script)
			if tc.prepare != nil {
				tc.prepare(t)
			}
			path, err := Finder{Folder: t.TempDir(), Say: t.Logf}.Binary(t.Context())
			if tc.says == "" && (err != nil || path != tc.want && filepath.Base(path) != tc.want) ||
				tc.says != "" && (err == nil || !strings.Contains(err.Error(), tc.says)) {
				t.Errorf("%q, %v", path, err)
			}
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestToolIsRemembered: a go.mod without local copies says which binary it is, so the go command is asked once.
func TestToolIsRemembered(t *testing.T) {
	self, err := os.Executable()
	must(t, err)
	asked := goSays(t, "echo "+self)
	finder := Finder{Folder: t.TempDir(), Say: t.Logf}
	for _, want := range []int{1, 1} {
		if path, err := finder.Binary(t.Context()); err != nil || path != self || asked() != want {
			t.Errorf("%q, %v, asked %d times", path, err, asked())
		}
	}
	must(t, os.WriteFile("go.mod", []byte("module example.com/shop\nreplace "+modulePath+" => ../setpoint\n"), 0o600))
	for _, want := range []int{2, 3} {
		if _, err := finder.Binary(t.Context()); err != nil || asked() != want {
			t.Errorf("a local copy: %v, asked %d times", err, asked())
		}
	}
}
