package ui

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

const (
	// dialTimeout bounds how long a server may take to be there.
	dialTimeout = 2 * time.Second
	// rereadInterval is the least time between two looks at the kubeconfig.
	rereadInterval = time.Second
)

// servers sends requests to one server of a kubeconfig, and to the next when that one cannot be reached. Requests only read, so one may
// be sent twice. The kubeconfig is read again after nobody could be reached, or a server did not believe the credentials: somebody may
// have renewed them. It is safe for concurrent use.
type servers struct {
	load func() ([]Server, error)

	mu      sync.Mutex
	all     []reached
	current int       // of all
	asOf    time.Time // when the kubeconfig was read
	stale   bool      // the kubeconfig is to be read again
}

// reached is a server with its transport.
type reached struct {
	Server
	base      *url.URL
	transport http.RoundTripper
}

func newServers(load func() ([]Server, error)) *servers { return &servers{load: load, stale: true} }

// read reads the kubeconfig.
func (s *servers) read() error {
	loaded, err := s.load()
	if err != nil {
		return err
	}
	all := make([]reached, 0, len(loaded))
	for _, server := range loaded {
		base, transport, err := reach(server.Config)
		if err != nil {
			return fmt.Errorf("%s: %w", server.Name, err)
		}
		all = append(all, reached{server, base, transport})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all, s.current, s.stale, s.asOf = all, 0, false, time.Now()
	return nil
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

// known are the servers, and which one is asked first.
func (s *servers) known() (all []reached, first int, err error) {
	s.mu.Lock()
	again := s.stale && time.Since(s.asOf) >= rereadInterval
	s.mu.Unlock()
	if again {
		err = s.read()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all, s.current, err
}

// configs are those of the servers, by name.
func (s *servers) configs() (map[string]*rest.Config, error) {
	all, _, err := s.known()
	configs := map[string]*rest.Config{}
	for _, server := range all {
		configs[server.Name] = server.Config
	}
	return configs, err
}

// RoundTrip implements http.RoundTripper. Of the request's URL the host is chosen here.
func (s *servers) RoundTrip(r *http.Request) (*http.Response, error) {
	all, first, err := s.known()
	failed := []error{err} // what was read before is tried all the same
	for i := range all {
		at := (first + i) % len(all)
		response, err := all[at].send(r)
		if err == nil {
			s.stay(at, response.StatusCode)
			return response, nil
		}
		failed = append(failed, fmt.Errorf("%s: %w", all[at].Name, err))
		if r.Context().Err() != nil {
			break
		}
	}
	s.stay(first, 0)
	return nil, fmt.Errorf("no server answers: %w", errors.Join(failed...))
}

// send sends a copy of the request.
func (t *reached) send(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Scheme, r.URL.Host, r.Host = t.base.Scheme, t.base.Host, ""
	r.URL.Path, r.URL.RawPath = strings.TrimSuffix(t.base.Path, "/")+r.URL.Path, "" // what was judged, and no other spelling of it
	if r.GetBody != nil {
		var err error
		if r.Body, err = r.GetBody(); err != nil {
			return nil, err
		}
	}
	return t.transport.RoundTrip(r)
}

// stay has the next request go to a server first; code is what it answered, 0: nobody did.
func (s *servers) stay(at, code int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current = at
	s.stale = code == 0 || code == http.StatusUnauthorized
}
