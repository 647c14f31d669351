package kubeletapi

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/setpoint-io/setpoint/internal/zpages"
)

// TestWhatTheProcessTellsOfItself: flags, and what users may ask for; not what is for servers and nodes alone.
func TestWhatTheProcessTellsOfItself(t *testing.T) {
	flags := pflag.NewFlagSet("agent", pflag.ContinueOnError)
	flags.String("data-dir", "/somewhere", "")
	s := measuredServer(t, measured{})
	ask := func(method, path string) (int, string) {
		rec := httptest.NewRecorder()
		s.handler().ServeHTTP(rec, httptest.NewRequest(method, path, nil))
		return rec.Code, rec.Body.String()
	}
	if code, _ := ask("GET", "/statusz"); code != http.StatusNotFound {
		t.Errorf("a process that tells nothing: %d", code)
	}
	s.Pages = zpages.Of("kubelet", flags)
	if code, text := ask("GET", "/flagz"); code != http.StatusOK || !strings.Contains(text, "/somewhere") {
		t.Errorf("%d %s", code, text)
	}
	code, text := ask("GET", "/statusz")
	_, paths, _ := strings.Cut(text, "Paths")
	if code != http.StatusOK || strings.Contains(paths, "/dial") || strings.Contains(paths, "/layers") {
		t.Errorf("%d %s", code, text)
	}
	for _, want := range []string{"/configz", "/debug", "/exec", "/flagz", "/healthz", "/metrics", "/pods", "/stats", "/statusz"} {
		if !slices.Contains(strings.FieldsFunc(paths, func(r rune) bool { return strings.ContainsRune(" :=\n", r) }), want) {
			t.Errorf("%s is not told of: %s", want, paths)
		}
	}
	if code, _ := ask("POST", "/flagz"); code != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", code)
	}
}
