package admin

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/raftstore/backup"
	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/state"
)

// testArchive is an archive of n objects of 10 KiB.
func testArchive(t *testing.T, n int) []byte {
	t.Helper()
	s := state.New(state.Options{})
	entry := &command.Entry{}
	for i := range n {
		entry.Commands = append(entry.Commands, command.Command{Ops: []command.Op{{
			Kind: command.Put, Key: "/k/" + strings.Repeat("x", i+1), Value: bytes.Repeat([]byte{byte(i)}, 10<<10),
		}}})
	}
	s.Apply(1, 1, entry)
	var out bytes.Buffer
	if _, err := backup.Write(&out, s.Root(), backup.Header{Term: 1, Time: time.Unix(0, 0)}); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// fetchFrom fetches a backup into a folder of its own from a server that answers so.
func fetchFrom(t *testing.T, answer http.HandlerFunc) (path string, report BackupReport, err error) {
	t.Helper()
	server := httptest.NewServer(answer)
	defer server.Close()
	path = filepath.Join(t.TempDir(), "b")
	report, err = FetchBackupFile(t.Context(), &rest.Config{Host: server.URL}, path, nil)
	return path, report, err
}

func TestFetchedBackupIsWholeOrAbsent(t *testing.T) {
	data := testArchive(t, 300)
	cases := []struct {
		name   string
		answer http.HandlerFunc
		want   error // nil: some error
		whole  bool
	}{
		{name: "whole", answer: func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(data) }, whole: true},
		{name: "aborted", answer: func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(data[:len(data)/2])
			panic(http.ErrAbortHandler)
		}},
		{name: "ended too early as if all were well", answer: func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(data[:len(data)-40])
		}, want: backup.ErrDamaged},
		{name: "empty", answer: func(http.ResponseWriter, *http.Request) {}, want: backup.ErrDamaged},
		{name: "refused", answer: func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusForbidden) }},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			path, report, err := fetchFrom(t, c.answer)
			if (err == nil) != c.whole || c.want != nil && !errors.Is(err, c.want) {
				t.Fatalf("error %v", err)
			}
			left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*"))
			if !c.whole {
				if len(left) > 0 {
					t.Errorf("files are left: %v", left)
				}
				return
			}
			file, err := os.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			if _, verified, err := backup.Load(file); err != nil || verified != report || report.Objects != 300 {
				t.Errorf("verified %+v, fetched %+v, %v", verified, report, err)
			}
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("anybody may read it: %v %v", info.Mode(), err)
			}
		})
	}
}

func TestAFailedBackupLeavesTheOneBefore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "b")
	if err := os.WriteFile(path, []byte("monday"), 0o600); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	if _, err := FetchBackupFile(t.Context(), &rest.Config{Host: server.URL}, path, nil); err == nil {
		t.Error("no error")
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "monday" {
		t.Errorf("found %q, %v", text, err)
	}
}

// TestABackupTakesNobodysFile: neither one that is called as its part might be, nor one that appears while it is fetched.
func TestABackupTakesNobodysFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "b")
	others := path + ".tmp"
	if err := os.WriteFile(others, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	data := testArchive(t, 3)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
			t.Error(err)
		}
		_, _ = w.Write(data)
	}))
	defer server.Close()
	if _, err := FetchBackupFile(t.Context(), &rest.Config{Host: server.URL}, path, nil); !errors.Is(err, ErrNotOurs) {
		t.Errorf("%v, want %v", err, ErrNotOurs)
	}
	for _, file := range []string{path, others} {
		if text, err := os.ReadFile(file); err != nil || string(text) != "precious" {
			t.Errorf("%s is %q, %v", file, text, err)
		}
	}
	if left, _ := filepath.Glob(path + "*"); len(left) != 2 {
		t.Errorf("found %v", left)
	}
}
