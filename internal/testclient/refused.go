package testclient

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// refusedLimit is how many questions are remembered.
const refusedLimit = 100

// Refused are what the caches of the test's clients asked for last in vain, with the answer.
type Refused struct {
	mu      sync.Mutex
	answers map[string]string
}

// See returns a function that passes an answer on, and remembers it while it is a refusal.
func (f *Refused) See(question string) func(*http.Response, error) (*http.Response, error) {
	return func(response *http.Response, err error) (*http.Response, error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		switch {
		case err == nil && response.StatusCode < http.StatusBadRequest:
			delete(f.answers, question)
		case f.answers == nil:
			f.answers = map[string]string{}
			fallthrough
		case len(f.answers) < refusedLimit:
			f.answers[question] = answer(response, err)
		}
		return response, err
	}
}

func answer(response *http.Response, err error) string {
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%d %s", response.StatusCode, http.StatusText(response.StatusCode))
}

// WaitFor says what keeps a manager from its controllers; held are kinds whose watches the test holds.
func (f *Refused) WaitFor(held []string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var lines []string
	for _, question := range slices.Sorted(maps.Keys(f.answers)) {
		lines = append(lines, fmt.Sprintf("%s: %s%s", question, f.answers[question], hint(question, f.answers[question])))
	}
	for _, kind := range held {
		lines = append(lines, "watches are held by HoldWatches: "+kind)
	}
	if len(lines) == 0 {
		return ": none of its caches was refused anything, so another holds its lease of leader election, or a Runnable of its own does not return"
	}
	return ": its caches wait for\n\t" + strings.Join(lines, "\n\t")
}

// hint says what to do about a refusal.
func hint(question, answer string) string {
	switch {
	case strings.HasPrefix(answer, "404"):
		if path, ok := strings.CutPrefix(question, "/apis/"); ok {
			group, _, _ := strings.Cut(path, "/")
			return fmt.Sprintf(": is a CRD of %s missing in Config.CRDs?", group)
		}
		return ": is its CRD missing in Config.CRDs?"
	case strings.HasPrefix(answer, "403"):
		return ": does a role allow it?"
	}
	return ""
}

// advise says what to do about an error with which a program ended at once.
func advise(err error, waitsFor func() string) string {
	switch text := fmt.Sprint(err); {
	case strings.Contains(text, "address already in use"):
		return "\nanother test or program has this port: make the manager with the options that manager.Options(c) returns (package setpointtest/envtest/manager)"
	case strings.Contains(text, "caches"), strings.Contains(text, "cache to be synced"), strings.Contains(text, "no match"):
		return waitsFor()
	}
	return ""
}
