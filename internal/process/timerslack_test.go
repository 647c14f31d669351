package process

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

func TestAllThreadsWakeLess(t *testing.T) {
	WakeLess()
	own := slackFile(strconv.Itoa(os.Getpid()))
	_, err := os.ReadFile(own)
	if errors.Is(err, fs.ErrPermission) {
		t.Logf("%s: not for this user: nothing was changed", own)
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	threads, err := filepath.Glob("/proc/self/task/*")
	if err != nil || len(threads) < 2 {
		t.Fatalf("threads %v, %v", threads, err)
	}
	for _, thread := range threads {
		text, err := os.ReadFile(slackFile(filepath.Base(thread)))
		if errors.Is(err, fs.ErrNotExist) {
			continue // it has ended
		}
		if got := strings.TrimSpace(string(text)); err != nil || got != strconv.FormatInt(timerSlack.Nanoseconds(), 10) {
			t.Errorf("slack of thread %s is %s ns, %v", thread, got, err)
		}
	}
}
