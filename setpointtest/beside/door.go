package beside

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// insideHost stands for the cluster's port in what RESTConfig returns: the door leads to the port that the cluster has now.
const insideHost = "http://beside.setpoint"

// errEnded is what clients are told after the end of the test.
var errEnded = errors.New("the cluster has ended with its test")

// port is where a cluster answers.
type port struct {
	url       *url.URL
	transport *http.Transport
}

// connect asks for the cluster's port.
func (w *world) connect() error {
	text, err := w.kubeconfig()
	if err != nil {
		return err
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(text)
	if err != nil {
		return err
	}
	next, err := portOf(config)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.port.close()
	w.port = next
	return nil
}

func portOf(config *rest.Config) (port, error) {
	at, err := url.Parse(config.Host)
	if err != nil {
		return port{}, err
	}
	encryption, err := rest.TLSConfigFor(config)
	if err != nil {
		return port{}, err
	}
	return port{at, utilnet.SetTransportDefaults(&http.Transport{TLSClientConfig: encryption})}, nil
}

// close leaves no connection behind.
func (p port) close() {
	if p.transport != nil {
		p.transport.CloseIdleConnections()
	}
}

// door leads the requests of a test's clients to the cluster.
type door struct {
	*world
	watched bool
}

// RoundTrip implements http.RoundTripper.
func (d door) RoundTrip(r *http.Request) (*http.Response, error) {
	d.mu.Lock()
	at, ended := d.port, d.ended
	d.mu.Unlock()
	if ended {
		closeBody(r)
		return nil, errEnded
	}
	question := r.URL.Path
	r = r.Clone(r.Context())
	r.URL.Scheme, r.URL.Host, r.Host = at.url.Scheme, at.url.Host, ""
	response, err := at.transport.RoundTrip(r)
	if err != nil && r.Context().Err() == nil {
		err = d.session.Explain(r.Context(), err)
	}
	if d.watched && r.Method == http.MethodGet && cachesAsk(question) {
		return d.refused.See(question)(response, err)
	}
	return response, err
}

// closeBody does what is a RoundTripper's, also of a request that it does not send.
func closeBody(r *http.Request) {
	if r.Body != nil {
		_ = r.Body.Close()
	}
}

// cachesAsk reports whether the path is one that caches wait for: a list or watch of a resource, or discovery. A Get of an object is
// not: operators ask for what is not there.
func cachesAsk(path string) bool {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	version := 2 // api/v1/…
	if parts[0] == "apis" {
		version = 3 // apis/GROUP/v1/…
	}
	rest := parts[min(version, len(parts)):]
	if len(rest) > 2 && rest[0] == "namespaces" {
		rest = rest[2:]
		if len(rest) == 1 && (rest[0] == "status" || rest[0] == "finalize") {
			return false
		}
	}
	return len(rest) <= 1
}

// CloseIdleConnections is for http.Client: they are closed with the cluster.
func (door) CloseIdleConnections() {}
