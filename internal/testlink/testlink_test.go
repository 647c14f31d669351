package testlink

import (
	"context"
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
	"time"

	"github.com/setpoint-io/setpoint/internal/process"
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
	if text, err := os.ReadFile(beside("fails")); err == nil {
		tries, err := os.OpenFile(beside("tries"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		_, _ = tries.WriteString("tried\n")
		return errors.New(string(text))
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
	http.HandleFunc("/hangs", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	http.HandleFunc("/full", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusTooManyRequests)
		_ = json.NewEncoder(w).Encode(Answer{Error: "there are 3 clusters"})
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
	if session.Name != "session-1" || session.Over() || session.Gone(t.Context()) {
		t.Errorf("the session %q is over", session.Name)
	}
	kill(t, s)
	if !session.Gone(t.Context()) || !session.Over() {
		t.Error("the session goes on without its server")
	}
	said := session.Explain(t.Context(), errors.New("EOF"))
	if !strings.Contains(said.Error(), "it was killed or crashed ("+session.log) {
		t.Error(said)
	}
	if !isFile(session.log) {
		t.Errorf("its log %s is no file", session.log)
	}
	must(t, os.WriteFile(session.log, []byte("panic: it crashed"), 0o600))
	if info, err := os.Stat(s.socket); err != nil || info.Mode().Type() != os.ModeSocket {
		t.Fatalf("the killed server left no socket: %v", err)
	}
	if _, err := s.session(t.Context()); err != nil {
		t.Error(err)
	}
	if pids := started(t, s); len(pids) != 2 {
		t.Errorf("%d servers were started", len(pids))
	}
	if text, err := os.ReadFile(session.log); err != nil || string(text) != "panic: it crashed" {
		t.Errorf("the log that was named says %q, %v", text, err)
	}
}

// TestStillThere: who looks whether the server has ended, because something else failed, does not end the session, nor do many at once.
func TestStillThere(t *testing.T) {
	s := testServer(t)
	session, err := s.session(t.Context())
	must(t, err)
	gone := make(chan bool, 10)
	for range cap(gone) {
		go func() { gone <- session.Gone(t.Context()) }()
	}
	for range cap(gone) {
		if <-gone || session.Over() {
			t.Error("the session of a server that is there is over")
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if session.Gone(ended) {
		t.Error("it is gone")
	}
	if session.pid != 0 && session.pid != started(t, s)[0] {
		t.Errorf("the server is said to be process %d", session.pid)
	}
}

// TestNoAnswer: a request ends at its limit, and says what to do.
func TestNoAnswer(t *testing.T) {
	s := testServer(t)
	session, err := s.session(t.Context())
	must(t, err)
	_, err = session.Ask(t.Context(), time.Millisecond, http.MethodGet, "/hangs", nil)
	if err == nil || !strings.Contains(err.Error(), "the test server has not answered GET /hangs within 1ms") || !strings.Contains(err.Error(), session.howToEnd()) {
		t.Error(err)
	}
}

// TestFull: a Go test cannot delete what others have, but its user can run fewer at once.
func TestFull(t *testing.T) {
	session, err := testServer(t).session(t.Context())
	must(t, err)
	_, err = session.Ask(t.Context(), QuickLimit, http.MethodPost, "/full", nil)
	if want := "there are 3 clusters: let fewer tests have a cluster at once, with -p and -parallel of go test"; err == nil || err.Error() != want {
		t.Error(err)
	}
}

// TestLogsAreFew: each start has a log of its own, and the newest few stay.
func TestLogsAreFew(t *testing.T) {
	s := testServer(t)
	for i := range logsKept + 3 {
		must(t, os.WriteFile(s.logOf(i+1), nil, 0o600))
		must(t, os.Chtimes(s.logOf(i+1), time.Time{}, time.Unix(int64(i), 0)))
	}
	s.dropLogs()
	if all := s.logs(); len(all) != logsKept-1 || all[0] != s.logOf(5) || s.logOf(0) != s.logOf(logsKept+3) {
		t.Error(all, s.logOf(0))
	}
}

// TestTidy: what a binary left that had no server for a week is removed, and nothing else.
func TestTidy(t *testing.T) {
	s := testServer(t)
	_, err := s.session(t.Context())
	must(t, err)
	folder := filepath.Dir(s.path)
	old := serverIn(folder, keyOf("another build"), "")
	left := []string{old.socket, old.socket + ".lock", old.lock, old.logOf(7), filepath.Join(folder, memoryPrefix+"1")}
	for _, path := range left {
		must(t, os.WriteFile(path, nil, 0o600))
	}
	tidy(folder, time.Now())
	for _, path := range left {
		if !isFile(path) {
			t.Errorf("%s was removed though it is new", path)
		}
	}
	tidy(folder, time.Now().Add(staleAge+time.Hour))
	for _, path := range left {
		if isFile(path) {
			t.Errorf("%s is there", path)
		}
	}
	if _, err := s.open(); err != nil || len(s.logs()) != 1 || !isFile(s.lock) {
		t.Errorf("what has a server: %v, %v", err, s.logs())
	}
}

// TestNoStart: what a server said last that did not start is told. One that found another server is tried again, no other.
func TestNoStart(t *testing.T) {
	for said, want := range map[string]int{"it has no port": 1, answersAlready + " /tmp/x already: use it": startsMax} {
		s := testServer(t)
		folder := filepath.Dir(s.socket)
		must(t, os.WriteFile(filepath.Join(folder, "fails"), []byte(said), 0o600))
		if _, err := s.session(t.Context()); err == nil || !strings.Contains(err.Error(), "testserver ended at once: "+said) {
			t.Error(err)
		}
		if tries, err := os.ReadFile(filepath.Join(folder, "tries")); strings.Count(string(tries), "tried") != want {
			t.Errorf("%s: %q, %v", said, tries, err)
		}
	}
}

// TestLock: who waits for another gives up at the limit, and what is no lock of another is told at once.
func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "start")
	unlock, err := lock(t.Context(), path, time.Minute)
	must(t, err)
	if _, err := lock(t.Context(), path, 0); !errors.Is(err, errHeld) {
		t.Error(err)
	}
	must(t, os.Remove(path))
	unlock()
	unlock, err = lock(t.Context(), path, 0)
	must(t, err)
	unlock()
	if _, err := lock(t.Context(), filepath.Join(path, "none"), time.Minute); err == nil || errors.Is(err, errHeld) {
		t.Error(err)
	}
	if lockLimit <= startsMax*startLimit {
		t.Error("others wait for less than a start may take")
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
	if _, err := Folder(); err == nil || !strings.Contains(err.Error(), "is not a folder of this user alone (mode 0700), so others could pose as the test server: remove it, or set XDG_RUNTIME_DIR") {
		t.Errorf("others may write there: %v", err)
	}
	if err := errors.Join(os.Remove(folder), os.Symlink(t.TempDir(), folder)); err != nil {
		t.Fatal(err)
	}
	if _, err := Folder(); err == nil {
		t.Error("it is a link of somebody's")
	}
	t.Setenv("XDG_RUNTIME_DIR", "/proc") // where nobody makes a folder, as in that of another user
	t.Setenv("TMPDIR", filepath.Dir(dir))
	if folder, err := Folder(); err != nil || filepath.Dir(folder) != filepath.Dir(dir) {
		t.Errorf("with XDG_RUNTIME_DIR of another user: %s, %v", folder, err)
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

const noTool = "[ $1 = run ] || { echo 'go: no such tool \"setpoint\"' >&2; exit 2; }\n"

// inPath puts a setpoint into PATH that says its version.
func inPath(version string) func(t *testing.T) {
	return func(t *testing.T) {
		must(t, os.WriteFile("setpoint", []byte("#!/bin/sh\necho '{\"setpoint\": \""+version+"\"}'\n"), 0o700))
	}
}

func variable(value string) func(t *testing.T) {
	return func(t *testing.T) { t.Setenv(BinaryVariable, value) }
}

// TestBinary: the variable, the module's tool, what is in PATH, and what the go command builds.
func TestBinary(t *testing.T) {
	self, err := os.Executable()
	must(t, err)
	for name, tc := range map[string]struct {
		script, want, says string
		prepare            func(t *testing.T)
	}{
		"variable":      {"exit 1", self, "", variable(self)},
		"no file":       {"exit 1", "", "SETPOINT_TEST_BINARY names /nowhere/setpoint, which cannot be run: build it, or unset the variable", variable("/nowhere/setpoint")},
		"name":          {"exit 1", "/bin/sh", "", variable("sh")},
		"relative":      {"exit 1", "", "SETPOINT_TEST_BINARY names ./go, which each package looks for in its own folder: give an absolute path", variable("./go")},
		"tool":          {"echo " + self, self, "", nil},
		"no build":      {"echo 'main.go:1: it does not compile' >&2; exit 1", "", "main.go:1: it does not compile: see that the command works in the module of the test, or name a binary with SETPOINT_TEST_BINARY", nil},
		"built":         {noTool + "echo " + self, self, "", nil},
		"no binary":     {noTool + "echo 'no required module provides package' >&2; exit 1", "", "there is no setpoint binary for tests: go mod edit -tool " + commandPath, nil},
		"in PATH":       {noTool, "setpoint", "", inPath(process.Version)},
		"other in PATH": {noTool + "echo " + self, self, "", inPath("9.9.9")},
		"no sum": {noTool + `printf 'main.go:1: missing go.sum entry for x; to add:\n\tgo get x\n' >&2; exit 1`, "",
			"exit status 1: main.go:1: missing go.sum entry for x; to add: go get x; ", nil},
		"only other": {noTool + "exit 1", "", "setpoint is setpoint 9.9.9", inPath("9.9.9")},
		"no go tool": {"exit 127", "", "go tool -n setpoint: exit status 127", nil},
	} {
		t.Run(name, func(t *testing.T) {
			goSays(t, tc.script)
			if tc.prepare != nil {
				tc.prepare(t)
			}
			path, err := Finder{Folder: t.TempDir(), Say: t.Logf}.Binary(t.Context())
			if tc.says == "" && (err != nil || path != tc.want && filepath.Base(path) != filepath.Base(tc.want)) ||
				tc.says != "" && (err == nil || !strings.Contains(err.Error(), tc.says)) {
				t.Errorf("%q, %v", path, err)
			}
		})
	}
}

// TestColdCache: the go command builds what no cache has, as a tool and as a command of the module. It is the real one.
func TestColdCache(t *testing.T) {
	t.Setenv(BinaryVariable, "")
	dir := t.TempDir()
	t.Chdir(dir)
	source := fmt.Sprintf("package main\n\nfunc main() { println(%q) }\n", dir) // which no build has seen
	must(t, os.MkdirAll("cmd/setpoint", 0o700))
	must(t, os.WriteFile("go.mod", []byte("module "+modulePath+"\n\ngo 1.24\n"), 0o600))
	must(t, os.WriteFile("cmd/setpoint/main.go", []byte(source), 0o600))
	finder := Finder{Folder: t.TempDir(), Say: t.Logf}
	built, err := finder.build(t.Context())
	if err != nil || !isFile(built) {
		t.Errorf("command: %q, %v", built, err)
	}
	must(t, os.WriteFile("go.mod", []byte("module "+modulePath+"\n\ngo 1.24\n\ntool "+commandPath+"\n"), 0o600))
	must(t, os.WriteFile("cmd/setpoint/main.go", []byte(source+"\nfunc init() { println(1) }\n"), 0o600))
	tool, err := finder.tool(t.Context())
	if err != nil || !isFile(tool) || tool == built {
		t.Errorf("tool: %q, %v", tool, err)
	}
}

// oneAtATime is a go command that fails while another runs.
const oneAtATime = "mkdir busy || exit 9\nls -R /bin/ /usr/bin >/dev/null\nrmdir busy\necho "

// TestOneBuild: one at a time asks the go command, says so before, and does not wait longer than the test lasts.
func TestOneBuild(t *testing.T) {
	self, err := os.Executable()
	must(t, err)
	asked := goSays(t, oneAtATime+self)
	must(t, os.WriteFile("go.mod", []byte("module "+modulePath+"\n"), 0o600)) // so that nothing is remembered
	said := make(chan string, 5)
	finder := Finder{Folder: t.TempDir(), Say: func(format string, _ ...any) { said <- format }}
	ended := make(chan error, cap(said))
	for range cap(said) {
		go func() {
			_, err := finder.Binary(t.Context())
			ended <- err
		}()
	}
	for range cap(said) {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	if len(said) != cap(said) || asked() != cap(said) || !strings.Contains(<-said, "takes minutes once") {
		t.Errorf("asked %d times, said %d times", asked(), len(said))
	}
	if buildLimit >= 10*time.Minute {
		t.Error("go test ends the package before it can say what it waits for")
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
	old := time.Now().Add(-memoryAge - time.Hour)
	must(t, os.Chtimes(finder.memory(), old, old))
	if _, err := finder.Binary(t.Context()); err != nil || asked() != 2 {
		t.Errorf("a day later: %v, asked %d times", err, asked())
	}
	must(t, os.Remove(finder.memory()))
	must(t, os.Mkdir(finder.memory(), 0o700))
	if path, err := finder.Binary(t.Context()); err != nil || path != self || asked() != 3 {
		t.Errorf("when it cannot be remembered: %q, %v, asked %d times", path, err, asked())
	}
	must(t, os.WriteFile("go.mod", []byte("module example.com/shop\nreplace "+modulePath+" => ../setpoint\n"), 0o600))
	for _, want := range []int{4, 5} {
		if _, err := finder.Binary(t.Context()); err != nil || asked() != want {
			t.Errorf("a local copy: %v, asked %d times", err, asked())
		}
	}
}
