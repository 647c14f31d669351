package machine

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestProcessOfOurOwn(t *testing.T) {
	own := Process(os.Getpid())
	all, err := Processes()
	if err != nil || !slices.Contains(all, own) {
		t.Errorf("we are not among %v: %v", all, err)
	}
	if args := own.Args(); !slices.Equal(args, os.Args) {
		t.Errorf("args %q, want %q", args, os.Args)
	}
	dir, err := Resolve(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(filepath.Join(dir, "held"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, state := range []string{"there", "deleted"} {
		if !slices.Contains(own.Files(), file.Name()) {
			t.Errorf("%s: %s is not among %q", state, file.Name(), own.Files())
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{"/", "/proc", filepath.Join(dir, "gone")} {
		if !own.Sees(path) {
			t.Errorf("we do not see our own %s", path)
		}
	}
	if !own.SameNetwork() {
		t.Error("our network is not our own")
	}
}

func TestProcessThatHasEnded(t *testing.T) {
	const nobody = Process(1 << 30)
	if args, files := nobody.Args(), nobody.Files(); args != nil || files != nil || nobody.RootUpper() != "" {
		t.Errorf("args %q, files %q", args, files)
	}
	if nobody.Sees("/") || nobody.SameNetwork() {
		t.Error("it sees something")
	}
}

func TestResolve(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	got, err := Resolve(filepath.Join(link, "not", "there"))
	if want := filepath.Join(dir, "not", "there"); got != want || err != nil {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
	if Below("/a/bc", "/a/b") || !Below("/a/b/c", "/a/b") || !Below("/a/b", "/a/b") || !Below("/a", "/") {
		t.Error("Below")
	}
}
