package ui

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

const (
	// dialTimeout bounds how long a server may take to be there, and headersTimeout how long until it begins to answer; the latter not for
	// logs, which may have nothing to say for a long time.
	dialTimeout    = 2 * time.Second
	headersTimeout = 15 * time.Second
	// rereadInterval is the least time between two looks at the kubeconfig.
	rereadInterval = time.Second
	// noServiceBytesMax is how much is kept of what a server says that cannot serve now.
	noServiceBytesMax = 64 << 10
)

var errLate = fmt.Errorf("it did not answer within %s", headersTimeout)

// servers sends requests to one server of a kubeconfig, and to the next when that one cannot be reached, does not begin to answer, or says
// that it cannot serve now (503 and 504), as one without a leader does. Requests only read, so one may be sent twice. The kubeconfig is
// read again after nobody could be reached, or a server did not believe the credentials: somebody may have renewed them. It is safe for
// concurrent use.
type servers struct {
	load func() ([]Server, error)

	mu      sync.Mutex
	all     []reached
	current string    // the name of the one that is asked first
	asOf    time.Time // when the kubeconfig was read
	stale   bool      // the kubeconfig is to be read again
}

// reached is a server with its transport.
type reached struct {
	Server
	base      *url.URL
	transport http.RoundTripper
}

func newServers(load func() ([]Server, error)) *servers { return &servers{load: load} }

// read reads the kubeconfig. If it cannot be read, what it had before is kept, and it is to be read again.
func (s *servers) read() error {
	all, err := s.loadAll()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asOf = time.Now()
	if err != nil {
		s.stale = true
		return err
	}
	s.all = all
	return nil
}

func (s *servers) loadAll() ([]reached, error) {
	loaded, err := s.load()
	if err != nil {
		return nil, err
	}
	all := make([]reached, 0, len(loaded))
	for _, server := range loaded {
		base, transport, err := reach(server.Config)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", server.Name, err)
		}
		all = append(all, reached{server, base, transport})
	}
	return all, nil
}

// reach is how a configuration leads to its server.
func reach(config *rest.Config) (*url.URL, http.RoundTripper, error) {
	config = rest.CopyConfig(config)
	config.DisableCompression = true // it is this machine that reads
	config.Dial = (&net.Dialer{Timeout: dialTimeout}).DialContext
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, nil, err
	}
	transport, err := rest.TransportFor(config)
	return base, transport, err
}

// known are the servers, the one that is asked first before the others.
func (s *servers) known() ([]reached, error) {
	var err error
	if s.toRead() {
		err = s.read()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	first := max(0, slices.IndexFunc(s.all, func(r reached) bool { return r.Name == s.current }))
	return slices.Concat(s.all[first:], s.all[:first]), err
}

// toRead reports whether the kubeconfig is to be read again, to one request only.
func (s *servers) toRead() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.stale || time.Since(s.asOf) < rereadInterval {
		return false
	}
	s.stale = false
	return true
}

// configs are those of the servers, by name.
func (s *servers) configs() (map[string]*rest.Config, error) {
	all, err := s.known()
	configs := map[string]*rest.Config{}
	for _, server := range all {
		configs[server.Name] = server.Config
	}
	return configs, err
}

// inOrder are those of the servers, the one that is asked first before the others.
func (s *servers) inOrder() ([]*rest.Config, error) {
	all, err := s.known()
	configs := make([]*rest.Config, 0, len(all))
	for _, server := range all {
		configs = append(configs, server.Config)
	}
	return configs, err
}

// RoundTrip implements http.RoundTripper. Of the request's URL the host is chosen here. If no server can serve now, the last that says so
// is the answer.
func (s *servers) RoundTrip(r *http.Request) (*http.Response, error) {
	all, err := s.known()
	failed := []error{err} // what was read before is tried all the same
	var noService *http.Response
	for i := range all {
		response, err := all[i].send(r)
		switch {
		case r.Context().Err() != nil: // whoever asked is gone, which says nothing of the server
			return response, err
		case err != nil:
			failed = append(failed, fmt.Errorf("%s: %w", all[i].Name, err))
		case cannotServe(response):
			noService = kept(response)
		default:
			s.stay(all[i].Name, response.StatusCode == http.StatusUnauthorized)
			return response, nil
		}
	}
	if noService != nil {
		return noService, nil
	}
	s.stay("", true)
	return nil, fmt.Errorf("no server answers: %w", errors.Join(failed...))
}

func cannotServe(r *http.Response) bool {
	return r.StatusCode == http.StatusServiceUnavailable || r.StatusCode == http.StatusGatewayTimeout
}

// kept is an answer that needs its connection no longer. Of a large one only the beginning is left.
func kept(r *http.Response) *http.Response {
	text, _ := io.ReadAll(io.LimitReader(r.Body, noServiceBytesMax)) // what was read says enough
	_ = r.Body.Close()
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	return r
}

// send sends a copy of the request, and returns once the answer begins.
func (t *reached) send(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	r = r.Clone(ctx)
	r.URL.Scheme, r.URL.Host, r.Host = t.base.Scheme, t.base.Host, ""
	r.URL.Path, r.URL.RawPath = strings.TrimSuffix(t.base.Path, "/")+r.URL.Path, "" // what was judged, and no other spelling of it
	if r.GetBody != nil {
		r.Body, _ = r.GetBody() // of a buffer: never fails
	}
	if !strings.HasSuffix(r.URL.Path, "/log") {
		defer time.AfterFunc(headersTimeout, func() { cancel(errLate) }).Stop()
	}
	response, err := t.transport.RoundTrip(r)
	if err != nil {
		if late := context.Cause(ctx); late != nil {
			err = late
		}
		cancel(err)
		return nil, err
	}
	response.Body = &answerBody{response.Body, cancel}
	return response, nil
}

// answerBody ends its request when it is closed.
type answerBody struct {
	io.ReadCloser
	cancel context.CancelCauseFunc
}

// Close implements io.Closer.
func (b *answerBody) Close() error {
	err := b.ReadCloser.Close()
	b.cancel(context.Canceled)
	return err
}

// stay has the next request go to a server first, or to the same as before if name is ""; stale has the kubeconfig read again.
func (s *servers) stay(name string, stale bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if name != "" {
		s.current = name
	}
	s.stale = s.stale || stale
}
