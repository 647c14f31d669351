package shim

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestLogRecords(t *testing.T) {
	long := strings.Repeat("x", lineBytesMax+10)
	tests := map[string]struct {
		writes []string
		want   []string
	}{
		"whole lines":         {[]string{"a\nb\n"}, []string{"F a", "F b"}},
		"a line in pieces":    {[]string{"he", "llo\n"}, []string{"F hello"}},
		"empty line":          {[]string{"\n"}, []string{"F "}},
		"end without newline": {[]string{"left"}, []string{"P left"}},
		"too long":            {[]string{long + "\n"}, []string{"P " + long[:lineBytesMax], "F " + long[lineBytesMax:]}},
		"exactly full":        {[]string{long[:lineBytesMax] + "\n"}, []string{"F " + long[:lineBytesMax]}},
		"too long in pieces":  {[]string{long[:100], long[100:], "\n"}, []string{"P " + long[:lineBytesMax], "F " + long[lineBytesMax:]}},
	}
	stamp := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "pod", "0.log")
			log, err := openLog(path)
			if err != nil {
				t.Fatal(err)
			}
			log.now = func() time.Time { return stamp }
			lines := &lineWriter{log: log, stream: "stdout"}
			for _, text := range test.writes {
				if _, err := lines.Write([]byte(text)); err != nil {
					t.Fatal(err)
				}
			}
			lines.flush()
			log.close()
			var want strings.Builder
			for _, record := range test.want {
				want.WriteString("2026-01-02T03:04:05.000000006Z stdout " + record + "\n")
			}
			if got, err := os.ReadFile(path); err != nil || string(got) != want.String() {
				t.Errorf("log:\n%.300s\nwant:\n%.300s\n%v", got, want.String(), err)
			}
		})
	}
}

func TestAttachedClientThatLagsIsCutOff(t *testing.T) {
	streams := newFanOut()
	slow, gone := streams.add(), streams.add()
	streams.remove(gone)
	for range clientQueueMax + 1 {
		streams.send(streamStdout, []byte("x"))
	}
	frames := 0
	for range slow {
		frames++
	}
	if frames != clientQueueMax {
		t.Errorf("%d frames before the cut", frames)
	}
	streams.close()
	if _, open := <-streams.add(); open {
		t.Error("client of an ended container got something")
	}
}
