package whatif

import (
	"bytes"
	"io"
	"net/http"
	"sync/atomic"
)

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// watched notes when a secret comes by.
type watched struct {
	io.ReadCloser
	all    []byte
	leaked *atomic.Bool
}

// Read implements io.Reader.
func (w *watched) Read(p []byte) (int, error) {
	n, err := w.ReadCloser.Read(p)
	w.all = append(w.all, p[:n]...)
	if bytes.Contains(w.all, []byte("hush")) || bytes.Contains(w.all, []byte("aHVzaA")) {
		w.leaked.Store(true)
	}
	return n, err
}
