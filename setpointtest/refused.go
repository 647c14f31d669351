package setpointtest

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

// refused are what the caches of the test's clients asked for last in vain, with the answer.
type refused struct {
	mu      sync.Mutex
	answers map[string]string
}

// see returns a function that passes an answer on, and remembers it while it is a refusal.
func (f *refused) see(question string) func(*http.Response, error) (*http.Response, error) {
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

// whatCachesWaitFor says what keeps a manager from its controllers.
func (w *world) whatCachesWaitFor() string {
	w.refused.mu.Lock()
	defer w.refused.mu.Unlock()
	var lines []string
	for _, question := range slices.Sorted(maps.Keys(w.refused.answers)) {
		lines = append(lines, fmt.Sprintf("%s: %s%s", question, w.refused.answers[question], hint(question, w.refused.answers[question])))
	}
	for _, held := range w.faults.heldKinds() {
		lines = append(lines, "watches are held by HoldWatches: "+held)
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
		if group, ok := strings.CutPrefix(question, "/apis/"); ok {
			return fmt.Sprintf(": is a CRD of %s missing in Config.CRDs?", group)
		}
		return ": is its CRD missing in Config.CRDs?"
	case strings.HasPrefix(answer, "403"):
		return ": does a role allow it?"
	}
	return ""
}

// advise says what to do about an error with which a program ended at once.
func (w *world) advise(err error) string {
	switch text := fmt.Sprint(err); {
	case strings.Contains(text, "address already in use"):
		return "\nanother test or program has this port: make the manager with the options that manager.Options(c) returns (package setpointtest/envtest/manager)"
	case strings.Contains(text, "caches"), strings.Contains(text, "cache to be synced"), strings.Contains(text, "no match"):
		return w.whatCachesWaitFor()
	}
	return ""
}
