package apiserver

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestEndingWith(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	rt := EndingWith(ctx, roundTripper(func(r *http.Request) (*http.Response, error) {
		cancel() // the server stops while the request waits for a majority
		<-r.Context().Done()
		return nil, r.Context().Err()
	}))
	if _, err := rt.RoundTrip(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)); !errors.Is(err, context.Canceled) {
		t.Errorf("the request ended with %v", err)
	}
}

// TestEndingWithPassesNoAnswerOn: clients take "later" for a reason to try again, for seconds.
func TestEndingWithPassesNoAnswerOn(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	rt := EndingWith(ctx, roundTripper(func(*http.Request) (*http.Response, error) {
		cancel() // the server stops before it answers
		w := httptest.NewRecorder()
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusServiceUnavailable)
		return w.Result(), nil
	}))
	if response, err := rt.RoundTrip(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)); !errors.Is(err, context.Canceled) {
		t.Errorf("the request ended with %v, %v", response, err)
	}
}
