package parts

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/setpoint-io/setpoint/controllers/reconcile/actions"
	"github.com/setpoint-io/setpoint/internal/parts"
)

func newParts() *Parts { return New("s1", "1.2.3", slog.New(slog.DiscardHandler)) }

// ask reads the whole log of the scheduler.
func ask(t *testing.T, p *Parts, query string) (code int, text string) {
	t.Helper()
	w := httptest.NewRecorder()
	p.serveLogs(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, logsPath+"kube-system/kube-scheduler-s1/kube-scheduler?"+query, nil))
	return w.Code, w.Body.String()
}

func TestOptionsOfLogs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newParts()
		for _, text := range []string{"one", "two", "three"} {
			p.Log(parts.Scheduler).Note(time.Now(), text)
			time.Sleep(time.Second)
		}
		const one, two, three = "2000-01-01T00:00:00.000Z one\n", "2000-01-01T00:00:01.000Z two\n", "2000-01-01T00:00:02.000Z three\n"
		for query, want := range map[string]string{
			"":                               one + two + three,
			"tailLines=2":                    two + three,
			"tailLines=0":                    "",
			"tailLines=9":                    one + two + three,
			"sinceSeconds=2":                 two + three,
			"sinceTime=2000-01-01T00:00:02Z": three,
			"limitBytes=30":                  (one + two)[:30],
			"limitBytes=0":                   "",
			"limitBytes=5&tailLines=1":       three[:5],
			"limitBytes=5&follow=true":       one[:5],
			"tailLines=1&timestamps=true":    "2000-01-01T00:00:02Z " + three,
			"tailLines=1&stream=Stdout&previous=false": three,
			"tailLines=1&stream=All":                   three,
		} {
			if code, text := ask(t, p, query); code != http.StatusOK || text != want {
				t.Errorf("%s: %d %q, want %q", query, code, text, want)
			}
		}
		for query, want := range map[string]string{
			"previous=true": "no previous log", "stream=Stderr": "no Stderr", "colour=red": `unknown option "colour"`, "tailLines=x": "tailLines: ",
			"sinceTime=yesterday": "sinceTime: ",
		} {
			if code, text := ask(t, p, query); code != http.StatusBadRequest || !strings.Contains(text, want) {
				t.Errorf("%s: %d %q, want %q", query, code, text, want)
			}
		}
	})
}

func TestLogsOfOthers(t *testing.T) {
	for _, path := range []string{"kube-system/kube-scheduler-s2/kube-scheduler", "default/kube-scheduler-s1/kube-scheduler", "kube-system/kube-scheduler-s1/kube-apiserver", ""} {
		w := httptest.NewRecorder()
		newParts().serveLogs(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, logsPath+path, nil))
		if w.Code != http.StatusNotFound {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}

// TestFollowing reads what comes, line by line, until it has enough.
func TestFollowing(t *testing.T) {
	p := newParts()
	server := httptest.NewServer(http.HandlerFunc(p.serveLogs))
	defer server.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+logsPath+"kube-system/kube-scheduler-s1/kube-scheduler?follow=true&tailLines=0", nil)
	if err != nil {
		t.Fatal(err)
	}
	p.Log(parts.Scheduler).Note(time.Now(), "before")
	response, err := http.DefaultClient.Do(request) // the header comes before the first line
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	for i := range 3 {
		p.Log(parts.Scheduler).Note(time.Now(), fmt.Sprint("line ", i))
		if !lines.Scan() || !strings.HasSuffix(lines.Text(), fmt.Sprint("Z line ", i)) {
			t.Fatalf("line %d: %q, %v", i, lines.Text(), lines.Err())
		}
	}
}

var errGone = errors.New("the reader is gone")

// TestASlowReaderIsToldWhatHeMissed: while he takes one piece, the log goes round.
func TestASlowReaderIsToldWhatHeMissed(t *testing.T) {
	log := &actions.Log{}
	log.Note(time.Now(), "first")
	var got []string
	q := question{follow: true, tail: -1, limit: -1}
	q.answer(t.Context(), log, func(text []byte) error {
		got = append(got, strings.Split(strings.TrimSpace(string(text)), "\n")[0])
		switch len(got) {
		case 2: // of which the first was nothing
			for range actions.LinesMax + 41 {
				log.Note(time.Now(), "later")
			}
		case 3:
			return errGone
		}
		return nil
	})
	if len(got) != 3 || !strings.HasSuffix(got[1], "first") || !strings.HasSuffix(got[2], "41 lines are missing here: the reader was slower than the log") {
		t.Errorf("%q", got)
	}
}

func TestWhatAServerLogsIsKept(t *testing.T) {
	p := newParts()
	logger := p.Logger(parts.Scheduler).With("a", 1)
	logger.Debug("nothing")
	logger.Warn("it fails", "err", "no room")
	if _, text := ask(t, p, ""); !strings.HasSuffix(text, "Z level=WARN msg=\"it fails\" a=1 err=\"no room\"\n") || strings.Count(text, "\n") != 1 {
		t.Error(text)
	}
}

func TestReports(t *testing.T) {
	p := newParts()
	p.Check(map[string]func(context.Context) error{
		parts.Store:     func(context.Context) error { return errors.New("the disk is full") },
		parts.Scheduler: func(context.Context) error { return nil },
	})
	w := httptest.NewRecorder()
	p.serveReport(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, reportPath, strings.NewReader("{}")))
	text, err := io.ReadAll(w.Body)
	if err != nil || !strings.Contains(string(text), `"troubles":{"setpoint-store":"the disk is full"}`) || !strings.Contains(string(text), `"version":"1.2.3"`) {
		t.Errorf("%s, %v", text, err)
	}
}
