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
