package boot

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func TestResolveUser(t *testing.T) {
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "etc"), 0o755); err != nil {
		t.Fatal(err)
	}
	passwd := "root:x:0:0:root:/root:/bin/sh\nbroken\nweb:x:33:34:web:/var/www:/bin/false\n" +
		"1000:x:0:0::/root:/bin/sh\n4294967296:x:0:0::/root:/bin/sh\n"
	group := "root:x:0:\nshadow:x:42:web,other\nstaff:x:50:web\n7:x:0:\n"
	if err := errors.Join(os.WriteFile(filepath.Join(root, "etc/passwd"), []byte(passwd), 0o644),
		os.WriteFile(filepath.Join(root, "etc/group"), []byte(group), 0o644)); err != nil {
		t.Fatal(err)
	}
	id := func(n int64) *int64 { return &n }
	tests := map[string]struct {
		user User
		want Identity
		err  string
	}{
		"nothing":              {User{}, Identity{Home: "/root", Groups: []uint32{0}}, ""},
		"name":                 {User{Name: "web"}, Identity{33, 34, []uint32{34, 42, 50}, "/var/www"}, ""},
		"listed number":        {User{Name: "33"}, Identity{33, 34, []uint32{34, 42, 50}, "/var/www"}, ""},
		"unlisted number":      {User{Name: "1000"}, Identity{1000, 0, []uint32{0}, "/"}, ""},
		"of the pod, unlisted": {User{UID: id(1000)}, Identity{1000, 0, []uint32{0}, "/"}, ""},
		"of the pod, too big":  {User{UID: id(1 << 32)}, Identity{}, "unable to find user 4294967296: not in the range"},
		"negative":             {User{UID: id(-1)}, Identity{}, "unable to find user -1"},
		"user and group":       {User{Name: "web:staff"}, Identity{33, 50, []uint32{50}, "/var/www"}, ""},
		"user and number":      {User{Name: "web:7"}, Identity{33, 7, []uint32{7}, "/var/www"}, ""},
		"pod wins":             {User{Name: "web:7", UID: id(5), GID: id(6)}, Identity{5, 6, []uint32{6}, "/"}, ""},
		"supplemental":         {User{Name: "web", Groups: []int64{9, 42}}, Identity{33, 34, []uint32{9, 34, 42, 50}, "/var/www"}, ""},
		"strict":               {User{Name: "web", Groups: []int64{9}, Strict: true}, Identity{33, 34, []uint32{9, 34}, "/var/www"}, ""},
		"unknown user":         {User{Name: "nobody"}, Identity{}, "unable to find user nobody"},
		"unknown group":        {User{Name: "web:nobody"}, Identity{}, "unable to find group nobody"},
		"number out of bounds": {User{Name: "4294967296"}, Identity{}, "unable to find user"},
	}
	for name, test := range tests {
		got, err := resolveUser(test.user, root)
		if (err == nil) != (test.err == "") || (err != nil && !strings.Contains(err.Error(), test.err)) {
			t.Errorf("%s: error %v", name, err)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestAccountsThatAreAPipe(t *testing.T) {
	root := t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(root, "etc"), 0o755), unix.Mkfifo(filepath.Join(root, "etc/passwd"), 0o644)); err != nil {
		t.Fatal(err)
	}
	if _, err := resolveUser(User{Name: "web"}, root); err == nil { // it would never return
		t.Error("an account from a pipe")
	}
}

func TestLookPath(t *testing.T) {
	dir := t.TempDir()
	tool, text := filepath.Join(dir, "tool"), filepath.Join(dir, "text")
	if err := errors.Join(os.WriteFile(tool, nil, 0o755), os.WriteFile(text, nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	env := []string{"PATH=/nowhere", "PATH=/nowhere::" + dir}
	tests := map[string]struct {
		command, want string
		err           error
	}{
		"in PATH":       {"tool", tool, nil},
		"not in PATH":   {"nosuch", "", exec.ErrNotFound},
		"not runnable":  {"text", "", exec.ErrNotFound},
		"by path":       {tool, tool, nil},
		"no permission": {text, "", os.ErrPermission},
		"directory":     {dir + "/", "", os.ErrPermission},
		"missing":       {"/no/such", "", os.ErrNotExist},
		"empty":         {"", "", exec.ErrNotFound},
	}
	for name, test := range tests {
		if got, err := lookPath(test.command, env); got != test.want || !errors.Is(err, test.err) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}
