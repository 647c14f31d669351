package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	// podCIDR is the runtime's, in a network namespace that nobody else sees.
	podCIDR = "10.199.9.0/24"
	// readyMax bounds the start of the runtime, stopMax its end.
	readyMax, stopMax = 30 * time.Second, 30 * time.Second
)

// options are the flags.
type options struct {
	setpoint, critest, busybox, webserver, nnp, dir string
	focus, skip                                     string
	update                                          bool
}

func main() {
	var o options
	flag.StringVar(&o.setpoint, "setpoint", "", "the binary to judge")
	flag.StringVar(&o.critest, "critest", "", "the suite, built")
	flag.StringVar(&o.busybox, "busybox", "", "a static busybox, for the images")
	flag.StringVar(&o.webserver, "webserver", "", "the program webserver, built")
	flag.StringVar(&o.nnp, "nnp", "", "the program nnp, built")
	flag.StringVar(&o.dir, "dir", "", "a folder for everything, on a file system that holds overlays")
	flag.StringVar(&o.focus, "focus", "", "only the cases whose names match")
	flag.StringVar(&o.skip, "skip", "", "no cases whose names match")
	flag.BoolVar(&o.update, "update", false, "write RESULTS.md")
	flag.Parse()
	if err := o.run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "critest:", err)
		os.Exit(1)
	}
}

func (o *options) run(ctx context.Context) error {
	certificate := filepath.Join(o.dir, "registry.pem")
	if err := serveRegistry(certificate); err != nil {
		return fmt.Errorf("registry: %w", err)
	}
	if err := push(o.busybox, programs{nginx: o.webserver, nnp: o.nnp}); err != nil {
		return fmt.Errorf("images: %w", err)
	}
	runtime, endpoint, err := o.startRuntime(ctx, certificate)
	if err != nil {
		return err
	}
	suite := o.runSuite(ctx, endpoint)
	stopped := stop(runtime)
	cases, err := readReport(o.dir)
	if err := errors.Join(err, stopped); err != nil {
		return errors.Join(err, suite)
	}
	return errors.Join(o.judge(cases), o.leftovers())
}

// startRuntime returns once the socket takes calls.
func (o *options) startRuntime(ctx context.Context, certificate string) (cmd *exec.Cmd, endpoint string, err error) {
	endpoint = "unix://" + filepath.Join(o.dir, "run", "cri.sock")
	log, err := os.Create(filepath.Join(o.dir, "setpoint.log"))
	if err != nil {
		return nil, "", err
	}
	defer log.Close()
	cmd = exec.CommandContext(ctx, o.setpoint, "cri", "--listen", endpoint, "--data-dir", o.data(), "--pod-cidr", podCIDR, "--log-level", "debug")
	cmd.Env = append(os.Environ(), "SSL_CERT_FILE="+certificate)
	cmd.Stderr = log
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, "", err
	}
	if err := cmd.Start(); err != nil {
		return nil, "", err
	}
	impatient := time.AfterFunc(readyMax, func() { _ = cmd.Process.Kill() })
	defer impatient.Stop()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.Contains(line, "ready") {
		return nil, "", fmt.Errorf("setpoint cri said %q, not that it is ready: see %s", line, log.Name())
	}
	go io.Copy(io.Discard, out) // ends with the process
	return cmd, endpoint, nil
}

func (o *options) data() string { return filepath.Join(o.dir, "data") }

func (o *options) runSuite(ctx context.Context, endpoint string) error {
	args := []string{"-runtime-endpoint", endpoint, "-image-endpoint", endpoint, "-ginkgo.junit-report", filepath.Join(o.dir, "junit.xml"), "-ginkgo.no-color", "-ginkgo.seed", "1"}
	if o.focus != "" {
		args = append(args, "-ginkgo.focus", o.focus)
	}
	if o.skip != "" {
		args = append(args, "-ginkgo.skip", o.skip)
	}
	log, err := os.Create(filepath.Join(o.dir, "critest.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.CommandContext(ctx, o.critest, args...)
	cmd.Stdout, cmd.Stderr, cmd.Dir = log, log, o.dir
	return cmd.Run()
}

// stop ends the runtime as an administrator does.
func stop(cmd *exec.Cmd) error {
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("the runtime ended before the suite: %w", errors.Join(err, cmd.Wait()))
	}
	impatient := time.AfterFunc(stopMax, func() { _ = cmd.Process.Kill() })
	defer impatient.Stop()
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("the runtime did not end well: %w", err)
	}
	return nil
}

// leftovers are pods that cases did not remove, and mounts and cgroups that nobody owns.
func (o *options) leftovers() error {
	var left []string
	for _, pattern := range []string{"sandboxes/*", "containers/*"} {
		found, err := filepath.Glob(filepath.Join(o.data(), "runtime", pattern))
		if err != nil {
			return err
		}
		left = append(left, found...)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, o.data()) {
			left = append(left, strings.TrimSpace(line))
		}
	}
	if len(left) > 0 {
		return fmt.Errorf("left after the suite:\n%s", strings.Join(left, "\n"))
	}
	return nil
}
