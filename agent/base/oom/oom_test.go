package oom

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	"k8s.io/client-go/tools/record"
)

const (
	limitIs    = "6,101,5001,-;oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=c1,mems_allowed=0,"
	begin      = "4,100,5000,-;hog invoked oom-killer: gfp_mask=0x140cca(GFP_HIGHUSER_MOVABLE|__GFP_COMP), order=0, oom_score_adj=0"
	ofMachine  = limitIs + "global_oom,task_memcg=/user.slice,task=hog,pid=4711,uid=0"
	ofPod      = limitIs + "oom_memcg=/setpoint/pod1,task_memcg=/setpoint/pod1/c1,task=hog,pid=4711,uid=0"
	ofRoot     = limitIs + "oom_memcg=/,task_memcg=/a,task=hog,pid=4711,uid=0"
	killedHog  = "3,102,5002,-;Out of memory: Killed process 4711 (hog) total-vm:9000kB, anon-rss:8000kB, file-rss:4kB, UID:0"
	killedHogC = "3,102,5002,c;Out of memory: Killed process 4711 (hog) total-vm:9000kB\n SUBSYSTEM=memory\n"
	before5    = "6,101,5001,-;Task in /setpoint/pod1/c1 killed as a result of limit of /setpoint/pod1"
	noise      = "6,7,5000,-;Tasks state (memory values in pages):"
	told       = "System OOM encountered, victim process: hog, pid: 4711"
)

// TestWhatIsTold: each row is what the kernel's log says, and what of it is told.
func TestWhatIsTold(t *testing.T) {
	aPods, machines := []string{begin, ofPod, killedHog}, []string{begin, ofMachine, killedHog}
	for name, c := range map[string]struct{ log, want []string }{
		"the machine has no memory left":      {[]string{begin, noise, ofMachine, killedHog}, []string{told}},
		"an older kernel's":                   {[]string{begin, noise, killedHog}, []string{told}},
		"the root group's limit":              {[]string{begin, ofRoot, killedHog}, []string{told}},
		"with the device that it is about":    {[]string{begin, ofMachine, killedHogC}, []string{told}},
		"a pod's limit":                       {[]string{begin, noise, ofPod, killedHog}, nil},
		"a pod's limit, an older kernel's":    {[]string{begin, before5, killedHog}, nil},
		"one after the other":                 {slices.Concat(aPods, machines, machines), []string{told, told}},
		"a report that is cut off":            {[]string{begin, ofMachine, begin, ofPod, killedHog}, nil},
		"killed for another cause":            {[]string{noise, killedHog}, nil},
		"a number that is none":               {[]string{begin, strings.ReplaceAll(ofRoot, "4711", "x")}, []string{"System OOM encountered"}},
		"a program wrote it":                  {[]string{begin, "14,102,5002,-;Out of memory: Killed process 4711 (hog)"}, nil},
		"a program wrote the beginning":       {[]string{strings.Replace(begin, "4,", "12,", 1), killedHog}, nil},
		"no form":                             {[]string{"", ";", "x;y", "4,100", begin, "-1,1;Killed process 1 (a)", killedHog}, []string{told}},
		"lines that were lost":                {[]string{begin, lost, killedHog}, nil},
		"a report after lines that were lost": {[]string{lost, begin, ofMachine, killedHog}, []string{told}},
	} {
		var got []string
		err := follow(&madeUp{records: c.log}, func(k kill) { got = append(got, k.message()) })
		if diff := cmp.Diff(c.want, got); diff != "" || !errors.Is(err, io.EOF) {
			t.Errorf("%s: %s%v", name, diff, err)
		}
	}
}

// lost stands for records that were overwritten.
const lost = "lost"

// madeUp is a log; each Read gives one record.
type madeUp struct{ records []string }

func (m *madeUp) Read(p []byte) (int, error) {
	if len(m.records) == 0 {
		return 0, io.EOF
	}
	record := m.records[0]
	m.records = m.records[1:]
	if record == lost {
		return 0, unix.EPIPE
	}
	return copy(p, record), nil
}

// waiting is a log in which nothing follows: a Read waits until it is closed.
type waiting struct {
	madeUp
	closed chan struct{}
}

func (w *waiting) Read(p []byte) (int, error) {
	if len(w.records) > 0 {
		return w.madeUp.Read(p)
	}
	<-w.closed
	return 0, os.ErrClosed
}

func (w *waiting) Close() error {
	close(w.closed)
	return nil
}

// TestRun: it is told as an event of the Node, and Run ends with its context while nothing is written into the log.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		log, events := &waiting{madeUp{[]string{begin, ofMachine, killedHog}}, make(chan struct{})}, record.NewFakeRecorder(10)
		events.IncludeObject = true
		open := func() (io.ReadCloser, error) { return log, nil }
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			Run(ctx, Config{NodeName: "n1", Open: open, Events: events, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
		}()
		synctest.Wait()
		if got, want := <-events.Events, "Warning SystemOOM "+told+" involvedObject{kind=Node,apiVersion=v1}"; got != want {
			t.Errorf("told %q, want %q", got, want)
		}
		cancel()
		<-ended
	})
}

// TestWithoutALog: most containers have none.
func TestWithoutALog(t *testing.T) {
	open := func() (io.ReadCloser, error) { return nil, os.ErrNotExist }
	Run(t.Context(), Config{NodeName: "n1", Open: open, Events: record.NewFakeRecorder(1), Logger: slog.New(slog.DiscardHandler)})
}
