package powercut

import (
	"bufio"
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// cutsDefault is how often the power goes in one run of the tests.
const cutsDefault = 8

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		os.Exit(runChild(dir, os.Getenv(childRound)))
	}
	os.Exit(m.Run())
}

// TestSyncsFail: what a sync failed to bring to the disk is not there, and the next one brings it.
func TestSyncsFail(t *testing.T) {
	disk, mountPoint := mountable(t)
	system := mount(t, disk, mountPoint)
	file, err := os.Create(filepath.Join(mountPoint, "f"))
	if err != nil {
		t.Fatal(err)
	}
	write(t, file, []byte("written"))
	for _, c := range []struct {
		errno syscall.Errno
		want  string
	}{{syscall.EIO, ""}, {0, "written"}} {
		system.FailSyncs(c.errno)
		if err := file.Sync(); (err == nil) != (c.errno == 0) {
			t.Errorf("with the error %v a sync says %v", c.errno, err)
		}
		if left, err := os.ReadFile(filepath.Join(disk, "f")); err != nil || string(left) != c.want {
			t.Errorf("with the error %v %q is on the disk: %v", c.errno, left, err)
		}
	}
	_ = file.Close()
	unmount(t, system)
}

// TestOnlyWhatWasSyncedSurvives proves that the layer loses what it should.
func TestOnlyWhatWasSyncedSurvives(t *testing.T) {
	disk, mountPoint := mountable(t)
	system := mount(t, disk, mountPoint)
	file, err := os.Create(filepath.Join(mountPoint, "f"))
	if err != nil {
		t.Fatal(err)
	}
	synced, unsynced := bytes.Repeat([]byte{'s'}, 3*sectorBytes), bytes.Repeat([]byte{'u'}, 300*sectorBytes)
	write(t, file, synced)
	if err := file.Sync(); err != nil {
		t.Fatal(err)
	}
	write(t, file, unsynced)
	if err := system.Cut(3); err != nil {
		t.Fatal(err)
	}
	if _, err := file.Write(unsynced); err == nil {
		t.Error("a write after the cut succeeded")
	}
	if err := file.Sync(); err == nil {
		t.Error("a sync after the cut succeeded")
	}
	_ = file.Close()
	unmount(t, system)
	left, err := os.ReadFile(filepath.Join(disk, "f"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.HasPrefix(left, synced) {
		t.Error("synced sectors are gone")
	}
	if survived := bytes.Count(left, []byte{'u'}); survived == len(unsynced) {
		t.Error("everything unsynced survived")
	}
}

func write(t *testing.T, file *os.File, data []byte) {
	t.Helper()
	if _, err := file.Write(data); err != nil {
		t.Fatal(err)
	}
}

// TestNothingAcknowledgedIsLost cuts the power of a store again and again, on the
// same data, while it writes, takes snapshots and cuts its log.
func TestNothingAcknowledgedIsLost(t *testing.T) {
	cuts := cutsDefault
	if text := os.Getenv("POWER_CUTS"); text != "" {
		var err error
		if cuts, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	disk, mountPoint := mountable(t)
	acknowledged := map[string]bool{}
	for round := range cuts {
		cutDuringWrites(t, disk, mountPoint, uint64(round), acknowledged)
		if t.Failed() {
			return
		}
	}
	t.Logf("%d cuts, %d writes acknowledged, none lost", cuts, len(acknowledged))
}

// cutDuringWrites starts the store on what the last cut left. It must hold
// everything acknowledged so far, then write until the cut.
func cutDuringWrites(t *testing.T, disk, mountPoint string, round uint64, acknowledged map[string]bool) {
	t.Helper()
	system := mount(t, disk, mountPoint)
	defer unmount(t, system)
	child := startChild(t, mountPoint, round)
	defer child.kill()
	found := map[string]bool{}
	for {
		kind, key := child.line()
		if kind == "" {
			t.Fatalf("round %d: the store did not start: %s", round, child.stderr.String())
		}
		if kind == lineReady {
			break
		}
		found[key] = true
	}
	for key := range acknowledged {
		if !found[key] {
			t.Errorf("round %d: %s was acknowledged and is gone", round, key)
		}
	}
	for range 20 + rand.New(rand.NewPCG(round, 1)).IntN(600) {
		kind, key := child.line()
		if kind != lineAcknowledged {
			t.Fatalf("round %d: the store stopped: %s", round, child.stderr.String())
		}
		acknowledged[key] = true
	}
	if err := system.Cut(round); err != nil {
		t.Fatal(err)
	}
	child.kill()
	for kind, key := child.line(); kind == lineAcknowledged; kind, key = child.line() {
		acknowledged[key] = true // said before it was killed: it counts
	}
}

// process is the store in a process of its own.
type process struct {
	command *exec.Cmd
	lines   *bufio.Scanner
	stderr  bytes.Buffer
}

func startChild(t *testing.T, dir string, round uint64) *process {
	t.Helper()
	p := &process{command: exec.Command(os.Args[0])}
	p.command.Env = append(os.Environ(), childDir+"="+dir, fmt.Sprintf("%s=%d", childRound, round))
	p.command.Stderr = &p.stderr
	out, err := p.command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.lines = bufio.NewScanner(out)
	if err := p.command.Start(); err != nil {
		t.Fatal(err)
	}
	return p
}

// line returns the next line's two words, or nothing at the end.
func (p *process) line() (kind, key string) {
	if !p.lines.Scan() {
		return "", ""
	}
	kind, key, _ = strings.Cut(p.lines.Text(), " ")
	return kind, key
}

func (p *process) kill() { _ = p.command.Process.Kill() }

func mountable(t *testing.T) (disk, mountPoint string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("mounting needs root")
	}
	if _, err := os.Stat("/dev/fuse"); err != nil {
		t.Skipf("no FUSE here: %v", err)
	}
	return t.TempDir(), t.TempDir()
}

func mount(t *testing.T, disk, mountPoint string) *FileSystem {
	t.Helper()
	system, err := Mount(disk, mountPoint)
	if err != nil {
		t.Fatal(err)
	}
	return system
}

func unmount(t *testing.T, system *FileSystem) {
	t.Helper()
	if err := system.Unmount(); err != nil {
		t.Fatal(err)
	}
}
