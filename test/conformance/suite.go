package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/onsi/ginkgo/v2/types"
)

const (
	// killDelay is how long the suite may clean up after it was interrupted.
	killDelay  = 2 * time.Minute
	reportName = "report.json"
	logName    = "e2e.log"
)

// suite is upstream's test program and how to call it.
type suite struct {
	ginkgo, binary, kubectl string
	kubeconfig, dir         string
	procs                   int
	timeout                 time.Duration
	// flags are further ones of the test program.
	flags []string
}

func (s suite) logPath() string { return filepath.Join(s.dir, logName) }

// run runs the cases and returns a result for each that was run. Failing cases are
// no error; a suite that could not run is.
func (s suite) run(ctx context.Context, cases []testCase) ([]result, error) {
	log, err := os.Create(s.logPath())
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.CommandContext(ctx, s.ginkgo, s.args(cases)...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
	cmd.WaitDelay = killDelay
	runErr := cmd.Run()
	reports, err := readReport(filepath.Join(s.dir, reportName))
	if err != nil {
		return nil, fmt.Errorf("the suite left no report (see %s): %w", s.logPath(), firstOf(runErr, err))
	}
	results := resultsOf(reports)
	if len(results) == 0 {
		return nil, fmt.Errorf("the suite ran nothing (see %s): %w", s.logPath(), firstOf(runErr, errNothingRun))
	}
	return results, nil
}

var errNothingRun = fmt.Errorf("no case was begun")

// firstOf is the first of two errors that there is.
func firstOf(first, second error) error {
	if first != nil {
		return first
	}
	return second
}

func (s suite) args(cases []testCase) []string {
	args := []string{
		"--procs=" + strconv.Itoa(s.procs), "--focus=" + focusOn(cases), "--timeout=" + s.timeout.String(),
		"--no-color", "--silence-skips", "--output-interceptor-mode=none", "--output-dir=" + s.dir, "--json-report=" + reportName, "--keep-going",
		s.binary, "--",
		"--kubeconfig=" + s.kubeconfig, "--provider=skeleton", "--kubectl-path=" + s.kubectl,
		"--dump-logs-on-failure=false", "--disable-log-dump=true",
	}
	return append(args, s.flags...)
}

func readReport(path string) ([]types.Report, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var reports []types.Report
	return reports, json.Unmarshal(data, &reports)
}
