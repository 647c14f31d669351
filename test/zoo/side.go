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
	program, module, dir, folder, assets string
	ginkgo                               bool
	recipe                               recipe
}

// outcome is what came of a trial.
type outcome struct {
	specs specs
	took  time.Duration
	why   string // it did not come to an end
	left  bool   // it left processes running, which were ended
}

// run runs the program and reads what it reports.
func (t trial) run(ctx context.Context) (outcome, error) {
	for _, folder := range []string{"home", "tmp"} {
		if err := os.MkdirAll(filepath.Join(t.folder, folder), 0o755); err != nil {
			return outcome{}, err
		}
	}
	limit := t.recipe.packageLimit()
	ctx, cancel := context.WithTimeout(ctx, limit+graceAfterLimit)
	defer cancel()
	output, err := os.Create(filepath.Join(t.folder, "output"))
	if err != nil {
		return outcome{}, err
	}
	defer output.Close()
	cmd := t.command(ctx, limit)
	bounded := &limitedWriter{to: output, left: outputMax}
	cmd.Stdout, cmd.Stderr = bounded, bounded
	begun := time.Now()
	ended := cmd.Run()
	came := outcome{took: time.Since(begun)}
	if came.specs, err = t.read(); err != nil {
		return outcome{}, err
	}
	if came.took >= limit {
		came.why = fmt.Sprintf("takes longer than %v", limit)
	} else if ended != nil && came.specs.failed() == 0 {
		came.why = fmt.Sprintf("ends with %q and no failed spec: %s", ended, t.lastLine())
	}
	came.left, err = exists(filepath.Join(t.folder, leftFile))
	return came, err
}

func exists(file string) (bool, error) {
	_, err := os.Stat(file)
	if os.IsNotExist(err) {
		return false, nil
	}
	return err == nil, err
}

// command is the program within its namespaces.
func (t trial) command(ctx context.Context, limit time.Duration) *exec.Cmd {
	args := []string{insideCommand, filepath.Join(t.folder, leftFile), t.program, markedLines, "-test.timeout", limit.String()}
	if t.recipe.run != "" {
		args = append(args, "-test.run", t.recipe.run)
	}
	args = append(args, t.recipe.flags...)
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

// environment has no clusters of the caller's, and folders of its own. Suites that name a folder for the servers look at
// TEST_ASSET_ first, the others at KUBEBUILDER_ASSETS.
func (t trial) environment() []string {
	home, tmp := filepath.Join(t.folder, "home"), filepath.Join(t.folder, "tmp")
	env := []string{
		"HOME=" + home, "TMPDIR=" + tmp, "XDG_CACHE_HOME=" + home, "PATH=" + os.Getenv("PATH"), "KUBEBUILDER_ASSETS=" + t.assets,
		"TEST_ASSET_ETCD=" + filepath.Join(t.assets, "etcd"), "TEST_ASSET_KUBE_APISERVER=" + filepath.Join(t.assets, "kube-apiserver"),
	}
	for _, setting := range t.recipe.env {
		env = append(env, strings.ReplaceAll(setting, "$MODULE", t.module))
	}
	return env
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
