package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"time"

	"github.com/setpoint-io/setpoint/test/vm"
)

const (
	planFile = "/tests/packages.txt"
	// logDevice is the console that run.sh keeps in a file: the whole output of the tests.
	logDevice = "/dev/hvc0"
)

// runPlan runs the test binaries one after the other.
func runPlan() error {
	runs, err := readPlan()
	if err != nil {
		return err
	}
	log, err := os.OpenFile(logDevice, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer log.Close()
	failed := 0
	for _, run := range runs {
		started := time.Now()
		verdict := runOne(run, log)
		word := "ok  "
		if !verdict.OK() {
			word = "FAIL"
			failed++
		}
		fmt.Printf("vm: %s %s %.0fs: %v\n", word, run.Package, time.Since(started).Seconds(), verdict)
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d packages", failed, len(runs))
	}
	return nil
}

// readPlan returns what this kernel can run of the plan, which must be something.
func readPlan() ([]vm.Run, error) {
	text, err := os.ReadFile(planFile)
	if err != nil {
		return nil, err
	}
	runs, err := vm.ParsePlan(string(text))
	if err != nil {
		return nil, err
	}
	release, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return nil, err
	}
	groups, module := commandLine("vm.cgroup"), securityModule()
	runs = slices.DeleteFunc(runs, func(run vm.Run) bool { return !run.Fits(string(release), groups, module) })
	if len(runs) == 0 {
		return nil, errors.New("the plan has nothing for this kernel")
	}
	return runs, nil
}

func runOne(run vm.Run, log io.Writer) vm.Verdict {
	fmt.Fprintln(log, "vm: ==", run.Package)
	read, write, err := os.Pipe()
	if err != nil {
		return vm.Verdict{Err: err}
	}
	defer read.Close()
	test := exec.Command(run.Binary(), run.Args()...)
	test.Dir, test.Stdout, test.Stderr = run.Dir(), write, write
	err = test.Start()
	write.Close()
	if err != nil {
		return vm.Verdict{Err: err}
	}
	judged := make(chan vm.Verdict, 1)
	go func() { judged <- vm.Judge(read, log) }()
	err = test.Wait()
	// What the tests left running may hold the pipe.
	_ = read.SetReadDeadline(time.Now().Add(time.Second))
	verdict := <-judged
	if err != nil || errors.Is(verdict.Err, os.ErrDeadlineExceeded) {
		verdict.Err = err
	}
	return verdict
}
