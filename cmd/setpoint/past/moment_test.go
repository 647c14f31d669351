package past

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// TestParseTime: times as people write them, and what is none.
func TestParseTime(t *testing.T) {
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.FixedZone("there", 3600))
	for text, want := range map[string]time.Time{
		"now": now, "10m": now.Add(-10 * time.Minute), "10 minutes ago": now.Add(-10 * time.Minute), "10m ago": now.Add(-10 * time.Minute),
		"2h30m": now.Add(-150 * time.Minute), "3d": now.AddDate(0, 0, -3), "an hour ago": now.Add(-time.Hour), "1  week ago": now.AddDate(0, 0, -7),
		"2026-03-04 10:30": now.Add(-90 * time.Minute), "2026-03-04T10:30:00Z": now.Add(-30 * time.Minute),
		"2026-03-04 10:30:00.250 UTC": now.Add(-30*time.Minute + 250*time.Millisecond), "2026-03-04T11:30:00+01:00": now.Add(-30 * time.Minute),
	} {
		if got, err := ParseTime(text, now); err != nil || !got.Equal(want) {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", "ago", "yesterday", "-10m", "10", "10 parsecs ago", "a", "99999999999d", "2000000000 weeks", "2026-13-01", "2026-03-04 10:30:00 EST", "1.5 days",
	} {
		if got, err := ParseTime(text, now); !errors.Is(err, errTime) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

type sent struct{ urls []string }

func (s *sent) RoundTrip(r *http.Request) (*http.Response, error) {
	s.urls = append(s.urls, r.URL.String())
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
}

// TestExactly: objects and lists are read at the revision, what is about the API as it is, and nothing else is sent.
func TestExactly(t *testing.T) {
	const exact = "resourceVersion=7&resourceVersionMatch=Exact"
	for path, want := range map[string]string{
		"/api/v1/namespaces/n/pods/p": "/api/v1/namespaces/n/pods/p?" + exact, "/apis/apps/v1/deployments?limit=5": "/apis/apps/v1/deployments?limit=5&" + exact,
		"/api/v1/namespaces/status": "/api/v1/namespaces/status?" + exact, "/api/v1/namespaces/n/pods?resourceVersion=0": "/api/v1/namespaces/n/pods?" + exact,
		"/api": "/api", "/apis/apps/v1": "/apis/apps/v1", "/openapi/v3": "/openapi/v3", "/version?timeout=1s": "/version?timeout=1s",
		"/api/v1/pods?continue=x&limit=5": "/api/v1/pods?continue=x&limit=5", "/api/v1/pods?watch=false": "/api/v1/pods?" + exact + "&watch=false",
		"/api/v1/namespaces/n/pods/p/log": "", "/api/v1/pods?watch=true": "", "/api/v1/pods?watch=1": "", "/api/v1/namespaces/n/status": "",
		"/metrics": "", "/logs": "", "/apis/apps/v1/namespaces/n/deployments/d/scale": "", "/": "",
	} {
		s := &sent{}
		response, err := Exactly(7)(s).RoundTrip(httptest.NewRequest(http.MethodGet, path, nil))
		if response != nil {
			_ = response.Body.Close()
		}
		switch {
		case want == "" && (!errors.Is(err, ErrReadOnly) || len(s.urls) > 0):
			t.Errorf("%s: %v, sent %v", path, err, s.urls)
		case want != "" && (err != nil || s.urls[0] != want):
			t.Errorf("%s: %v, sent %v", path, err, s.urls)
		}
	}
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		s := &sent{}
		response, err := Exactly(7)(s).RoundTrip(httptest.NewRequest(method, "/api/v1/namespaces/n/pods", nil))
		if response != nil || !errors.Is(err, ErrReadOnly) || len(s.urls) > 0 {
			t.Errorf("%s was sent: %v", method, err)
		}
	}
}
