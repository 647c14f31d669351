package measure

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// proc makes a proc file system of these files.
func proc(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestMemoryThatIsLeft(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       Memory
		err        error
	}{
		{"free and files", "MemTotal: 100 kB\nMemFree: 20 kB\nMemAvailable: 90 kB\nInactive(file): 10 kB\n", Memory{100 << 10, 30 << 10}, nil},
		{"more than there is", "MemTotal: 100 kB\nMemFree: 200 kB\n", Memory{}, ErrForm},
		{"something else", "hello\n", Memory{}, ErrForm},
	} {
		got, err := ReadMemory(proc(t, map[string]string{"meminfo": c.text}))
		if got != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s: %+v, %v", c.name, got, err)
		}
	}
	if _, err := ReadMemory(t.TempDir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

func TestProcessIDsThatAreLeft(t *testing.T) {
	files := map[string]string{"sys/kernel/pid_max": "32768\n", "sys/kernel/threads-max": "1000\n", "loadavg": "0.20 0.18 0.12 1/80 11206\n"}
	if got, err := ReadProcesses(proc(t, files)); err != nil || got != (Processes{80, 1000}) {
		t.Errorf("%+v, %v", got, err)
	}
	for name, text := range map[string]string{"loadavg": "0.20", "sys/kernel/pid_max": "many"} {
		kept := files[name]
		files[name] = text
		if got, err := ReadProcesses(proc(t, files)); err == nil {
			t.Errorf("%s is %q: %+v", name, text, got)
		}
		files[name] = kept
	}
}

func TestFileSystemsAreToldApart(t *testing.T) {
	a, err := FileSystemOf(t.TempDir())
	if err != nil || a.CapacityBytes <= 0 || a.AvailBytes > a.CapacityBytes {
		t.Fatalf("%+v, %v", a, err)
	}
	if b, err := FileSystemOf(Proc); err != nil || b.Device == a.Device {
		t.Errorf("%+v and %+v, %v", a, b, err)
	}
	if _, err := FileSystemOf(filepath.Join(t.TempDir(), "gone")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a path that is not there: %v", err)
	}
}
