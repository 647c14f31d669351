package aggregation

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/transport"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

const (
	// refreshInterval is how often a server that answers is asked what it offers.
	refreshInterval = time.Minute
	// retryDelayMin is the pause after the first failure; it doubles up to refreshInterval.
	retryDelayMin = 500 * time.Millisecond
	// answerTimeout bounds each question to a server, and schemaTimeout the wait for its
	// schemas, which it may have to make first; upstream's.
	answerTimeout = 5 * time.Second
	schemaTimeout = time.Minute
	// dialTimeout bounds connecting to one.
	dialTimeout = 5 * time.Second
	// answerLimit bounds what a server may say of itself in one document.
	answerLimit = 16 << 20
	// idleConnectionsLimit and idleConnectionTimeout bound what is kept for the next request.
	idleConnectionsLimit  = 25
	idleConnectionTimeout = 90 * time.Second
)

// aggregatorName is who asks for documents and probes; upstream's name.
const aggregatorName = "system:kube-aggregator"

var (
	errAnswerTooLong = errors.New("the answer is too long")
	errSwitched      = errors.New("the server switched protocols without being asked")
)

// target names a server and how it is trusted.
type target struct {
	namespace, name string
	port            int32
	insecure        bool
	bundle          string
}

func targetOf(service *apiregistrationv1.APIService) target {
	to := service.Spec.Service
	port := int32(443)
	if to.Port != nil {
		port = *to.Port
	}
	return target{to.Namespace, to.Name, port, service.Spec.InsecureSkipTLSVerify, string(service.Spec.CABundle)}
}

// backend is one other server.
type backend struct {
	target target
	config *Config
	// mu guards client, and as, the authority by which the server behind it knows this one.
	mu     sync.Mutex
	client *http.Client
	as     string
	stop   context.CancelFunc
	asked  chan struct{} // has room for one: it wakes run

	offer atomic.Pointer[offer]
}

func newBackend(config *Config, to target, last *offer) *backend {
	b := &backend{target: to, config: config, asked: make(chan struct{}, 1)}
	b.offer.Store(last)
	return b
}

// caller asks the server, and follows no redirects. When this server is known by another authority, the connections of before are left to
// what goes on over them.
func (b *backend) caller() *http.Client {
	b.mu.Lock()
	defer b.mu.Unlock()
	as := b.config.Authority()
	if b.client != nil && b.as == as {
		return b.client
	}
	if b.client != nil {
		b.client.CloseIdleConnections()
	}
	b.as, b.client = as, &http.Client{
		Transport:     b.newTransport(),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return b.client
}

// newTransport dials without the proxies of the environment: servers are in the cluster.
func (b *backend) newTransport() http.RoundTripper {
	config := &tls.Config{
		MinVersion: tls.VersionTLS12, ServerName: b.target.name + "." + b.target.namespace + ".svc", InsecureSkipVerify: b.target.insecure,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return b.config.Certificate() },
	}
	if b.target.bundle != "" {
		config.RootCAs = x509.NewCertPool()
		config.RootCAs.AppendCertsFromPEM([]byte(b.target.bundle)) // one without a certificate trusts nobody
	}
	return utilnet.SetTransportDefaults(&http.Transport{
		Proxy: func(*http.Request) (*url.URL, error) { return nil, nil }, DialContext: b.dial,
		TLSClientConfig: config, MaxIdleConnsPerHost: idleConnectionsLimit, IdleConnTimeout: idleConnectionTimeout,
	})
}

func (b *backend) dial(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	return b.config.Dial(ctx, network, address)
}

// locate is the address of a path on a ready endpoint of the server.
func (b *backend) locate(path string) (*url.URL, error) {
	found, err := b.config.Services.ResolveEndpoint(b.target.namespace, b.target.name, b.target.port)
	if err != nil {
		return nil, err
	}
	return &url.URL{Scheme: "https", Host: found.Host, Path: path}, nil
}

// ask makes run ask the server now.
func (b *backend) ask() {
	select {
	case b.asked <- struct{}{}:
	default: // it is going to
	}
}

// run keeps the offer until ctx ends, and publishes each that is new.
func (b *backend) run(ctx context.Context, versions func() []schema.GroupVersion, publish func()) {
	delay := retryDelayMin
	for {
		pause := refreshInterval
		if err := b.refresh(ctx, versions(), publish); err != nil {
			pause = delay
			delay = min(2*delay, refreshInterval)
			b.config.Logger.Debug(
				"an aggregated server does not tell what it offers",
				"service",
				b.target.namespace+"/"+b.target.name,
				"err",
				err,
			)
		} else {
			delay = retryDelayMin
		}
		select {
		case <-ctx.Done():
			return
		case <-b.asked:
		case <-time.After(pause):
		}
	}
}

// refresh asks for the resources first, then for their schemas, which may take long.
func (b *backend) refresh(ctx context.Context, versions []schema.GroupVersion, publish func()) error {
	replace := func(next *offer) {
		if last := b.offer.Swap(next); !next.same(last) {
			publish()
		}
	}
	next, err := b.fetch(ctx, versions, b.offer.Load())
	replace(next)
	if err != nil {
		return err
	}
	replace(b.withSchemas(ctx, next))
	return nil
}

// answer is what a server said.
type answer struct {
	status            int
	contentType, etag string
	body              []byte
}

// get asks the server for a document, for no longer than limit. An answer of any status is no error.
func (b *backend) get(ctx context.Context, limit time.Duration, path, accept, etag string) (*answer, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	r, err := b.newRequest(ctx, path)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", accept)
	if etag != "" {
		r.Header.Set("If-None-Match", etag)
	}
	response, err := b.caller().Do(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode == http.StatusSwitchingProtocols {
		return nil, fmt.Errorf("%s: %w", path, errSwitched) // its body has no end, and no time limit
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, answerLimit+1))
	if err == nil && len(body) > answerLimit {
		err = fmt.Errorf("%s: %w", path, errAnswerTooLong)
	}
	return &answer{response.StatusCode, response.Header.Get("Content-Type"), response.Header.Get("ETag"), body}, err
}

func (b *backend) newRequest(ctx context.Context, path string) (*http.Request, error) {
	location, err := b.locate(path)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, location.String(), nil)
	if err == nil {
		transport.SetAuthProxyHeaders(r, aggregatorName, "", []string{user.SystemPrivilegedGroup}, nil)
	}
	return r, err
}

// probesAtOnce is how many endpoints are tried; one good answer is enough. Upstream's number.
const probesAtOnce = 5

// probe reports why nobody behind the Service answers for a path; upstream's words.
func (b *backend) probe(ctx context.Context, path string) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	results := make(chan error, probesAtOnce)
	for range probesAtOnce {
		wg.Go(func() { results <- b.probeOnce(ctx, path) })
	}
	var err error
	for range probesAtOnce {
		if err = <-results; err == nil {
			return nil
		}
	}
	return err
}

func (b *backend) probeOnce(ctx context.Context, path string) error {
	r, err := b.newRequest(ctx, path)
	if err != nil {
		return err
	}
	response, err := b.caller().Do(r)
	if err != nil {
		b.caller().CloseIdleConnections()
		return fmt.Errorf("failing or missing response from %v: %w", r.URL, err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode < http.StatusOK || response.StatusCode >= http.StatusMultipleChoices {
		return fmt.Errorf("failing or missing response from %v: bad status from %v: %d", r.URL, r.URL, response.StatusCode)
	}
	return nil
}
