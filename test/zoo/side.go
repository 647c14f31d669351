package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	// graceAfterLimit is what a test program has to say where it hangs, after its limit.
	graceAfterLimit = 20 * time.Second
	// outputMax bounds what is kept of a package's output, in bytes; the rest is dropped.
	outputMax = 256 << 20
)

// trial is one package's test program on one side.
type trial struct {
	program, dir, folder, assets string
	ginkgo                       bool
	recipe                       recipe
}

// run runs the program and reads what it reports. why is set if it did not come to an end.
func (t trial) run(ctx context.Context) (specs specs, took time.Duration, why string, err error) {
	for _, folder := range []string{"home", "tmp"} {
		if err := os.MkdirAll(filepath.Join(t.folder, folder), 0o755); err != nil {
			return nil, 0, "", err
		}
	}
	limit := t.recipe.packageLimit()
	ctx, cancel := context.WithTimeout(ctx, limit+graceAfterLimit)
	defer cancel()
	output, err := os.Create(filepath.Join(t.folder, "output"))
	if err != nil {
		return nil, 0, "", err
	}
	defer output.Close()
	cmd := t.command(ctx, limit)
	bounded := &limitedWriter{to: output, left: outputMax}
	cmd.Stdout, cmd.Stderr = bounded, bounded
	begun := time.Now()
	ended := cmd.Run()
	took = time.Since(begun)
	specs, err = t.read()
	if took >= limit {
		why = fmt.Sprintf("takes longer than %v", limit)
	} else if ended != nil && specs.failed() == 0 {
		why = fmt.Sprintf("ends with %q and no failed spec: %s", ended, t.lastLine())
	}
	return specs, took, why, err
}

// command is the program within its namespaces.
func (t trial) command(ctx context.Context, limit time.Duration) *exec.Cmd {
	args := []string{insideCommand, t.program, "-test.v", "-test.timeout", limit.String()}
	if t.recipe.run != "" {
		args = append(args, "-test.run", t.recipe.run)
	}
	if t.ginkgo {
		args = append(args, "--ginkgo.no-color", "--ginkgo.json-report", filepath.Join(t.folder, "report.json"))
	}
	cmd := exec.CommandContext(ctx, "/proc/self/exe", args...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = t.dir, t.environment(), graceAfterLimit
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWPID, Pdeathsig: syscall.SIGKILL,
	}
	return cmd
}

// environment has no clusters of the caller's, and folders of its own.
func (t trial) environment() []string {
	home, tmp := filepath.Join(t.folder, "home"), filepath.Join(t.folder, "tmp")
	env := []string{"HOME=" + home, "TMPDIR=" + tmp, "XDG_CACHE_HOME=" + home, "KUBEBUILDER_ASSETS=" + t.assets, "PATH=" + os.Getenv("PATH")}
	return append(env, t.recipe.env...)
}

// read reads the two kinds of reports.
func (t trial) read() (specs, error) {
	found := specs{}
	output, err := os.Open(filepath.Join(t.folder, "output"))
	if err != nil {
		return nil, err
	}
	defer output.Close()
	if err := found.readTests(output); err != nil {
		return nil, err
	}
	report, err := os.ReadFile(filepath.Join(t.folder, "report.json"))
	if os.IsNotExist(err) {
		return found, nil
	}
	if err != nil {
		return nil, err
	}
	return found, found.readGinkgo(report)
}

func (t trial) lastLine() string {
	said, err := os.ReadFile(filepath.Join(t.folder, "output"))
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(said[max(0, len(said)-lineMax):])), "\n")
	return oneLine(lines[len(lines)-1])
}

// limitedWriter drops what is too much.
type limitedWriter struct {
	to   *os.File
	left int
}

func (w *limitedWriter) Write(p []byte) (int, error) {
	kept := p[:min(len(p), w.left)]
	w.left -= len(kept)
	if _, err := w.to.Write(kept); err != nil {
		return 0, err
	}
	return len(p), nil
}
