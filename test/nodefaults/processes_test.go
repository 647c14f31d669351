package nodefaults

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	// lookEvery is how often pods are looked at, unless that takes more than one of lookPart parts of the time.
	lookEvery = 20 * time.Millisecond
	lookPart  = 10
)

// processes are the command lines of this namespace's, by their numbers.
func processes() map[int][]string {
	found := map[int][]string{}
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		text, _ := os.ReadFile(file)                                // it may have ended
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))) // it is a number
		if args := strings.Split(string(text), "\x00"); err == nil && len(text) > 0 {
			found[pid] = args
		}
	}
	return found
}

// workloads are the processes of the workload in each pod, by the pods' names. Those without a name are execs.
func workloads() map[string][]int {
	found := map[string][]int{}
	for pid, args := range processes() {
		if len(args) > 2 && args[0] == "/workload" && args[2] != "" {
			found[args[2]] = append(found[args[2]], pid)
		}
	}
	return found
}

// shimOf is the process that holds the pod.
func shimOf(t *testing.T, pod string) int {
	t.Helper()
	running := workloads()[pod]
	if len(running) != 1 || holderOf(running[0]) == 0 {
		t.Fatalf("the processes of the pod %s: %d", pod, running)
	}
	return holderOf(running[0])
}

// holderOf is the shim above a process; 0 if it has ended.
func holderOf(pid int) int {
	for all := processes(); pid > 1; pid = parentOf(pid) {
		if args := all[pid]; len(args) > 0 && args[0] == "setpoint-shim" {
			return pid
		}
	}
	return 0
}

// parentOf is 0 for a process that has ended.
func parentOf(pid int) int {
	text, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	_, after, _ := strings.Cut(string(text), ") ") // its name is before
	fields := strings.Fields(after)
	if len(fields) < 2 {
		return 0
	}
	parent, _ := strconv.Atoi(fields[1])
	return parent
}

// lookForTwins looks all the time for pods that run twice, until the result is called, which names one.
func lookForTwins(t *testing.T) (end func() string) {
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan string, 1)
	go func() {
		twin := ""
		for ctx.Err() == nil {
			began := time.Now()
			for name, running := range workloads() {
				if len(running) > 1 {
					twin = fmt.Sprintf("%s (%d)", name, running)
				}
			}
			select {
			case <-time.After(max(lookEvery, lookPart*time.Since(began))): // a crowd takes long to look at
			case <-ctx.Done():
			}
		}
		result <- twin
	}()
	return func() string { cancel(); return <-result }
}
