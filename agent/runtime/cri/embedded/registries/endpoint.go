package registries

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path"
	"regexp"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// fileBytesMax bounds a file of the configuration, or one with certificates or a key.
const fileBytesMax = 1 << 20

// Endpoint is one place that has the images of a registry.
type Endpoint struct {
	// Transport leads requests for the registry here.
	Transport http.RoundTripper
	// Auth are the credentials here; nil: none. With Own the pod's come before them.
	Auth *authn.AuthConfig
	// Own is the registry itself.
	Own bool
	// DigestsOnly: names with a tag are not looked up here.
	DigestsOnly bool
	rewrites    []rewrite
	text        string
}

// String is its URL.
func (e Endpoint) String() string { return e.text }

var errTag = errors.New("only digests are looked up there")

// Reference is what an image of the registry is called here.
func (e Endpoint) Reference(ref name.Reference) (name.Reference, error) {
	repository := ref.Context().RepositoryStr()
	for _, r := range e.rewrites {
		if r.from.MatchString(repository) {
			repository = r.from.ReplaceAllString(repository, r.to)
			break
		}
	}
	there, err := name.NewRepository(ref.Context().RegistryStr() + "/" + repository)
	if err != nil {
		return nil, err
	}
	if digest, ok := ref.(name.Digest); ok {
		return there.Digest(digest.DigestStr()), nil
	}
	if e.DigestsOnly {
		return nil, errTag
	}
	return there.Tag(ref.Identifier()), nil
}

// Credentials are those of a pod at the registry itself, if it has some, or else what is written down.
func (e Endpoint) Credentials(pod authn.AuthConfig) authn.AuthConfig {
	if e.Own && pod != (authn.AuthConfig{}) || e.Auth == nil && e.Own {
		return pod
	}
	if e.Auth == nil {
		return authn.AuthConfig{}
	}
	return *e.Auth
}

type rewrite struct {
	from *regexp.Regexp
	to   string
}

// place is an endpoint as the files say it.
type place struct {
	url *url.URL // its path is the root of the API, /v2 with most
	tls tlsFiles
	// headers go with each request.
	headers http.Header
}

type tlsFiles struct {
	authorities []string
	pairs       [][2]string // certificate and key; a key of "" is in the certificate's file
	skipVerify  bool
}

var errURL = errors.New("want http:// or https://, a host and maybe a path")

// parsePlace reads a URL; whole: its path is the root of the API as it stands.
func parsePlace(text string, whole bool) (place, error) {
	if !strings.Contains(text, "://") {
		text = "https://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return place{}, errURL
	}
	if !whole {
		u.Path = path.Join("/", u.Path, "v2")
	}
	u.Path = strings.TrimSuffix(u.Path, "/")
	return place{url: u}, nil
}

// withoutUser is a URL that may be shown.
func withoutUser(text string) string {
	if i := strings.LastIndexByte(text, '@'); i >= 0 {
		return "…" + text[i:]
	}
	return text
}

// transport leads requests for host here.
func (p place) transport(host, registry string) (http.RoundTripper, error) {
	base := remote.DefaultTransport.(*http.Transport).Clone()
	config, err := p.tls.config()
	if err != nil {
		return nil, err
	}
	base.TLSClientConfig = config
	return &leading{base, host, registry, p}, nil
}

func (f tlsFiles) config() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: f.skipVerify} //nolint:gosec // the administrator says so
	if len(f.authorities) > 0 {
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		for _, name := range f.authorities {
			text, err := readFile(name)
			if err != nil {
				return nil, err
			}
			if !pool.AppendCertsFromPEM(text) {
				return nil, fmt.Errorf("%s: no certificate in PEM", name)
			}
		}
		config.RootCAs = pool
	}
	for _, pair := range f.pairs {
		certificate, err := loadPair(pair)
		if err != nil {
			return nil, err
		}
		config.Certificates = append(config.Certificates, certificate)
	}
	return config, nil
}

func loadPair(pair [2]string) (tls.Certificate, error) {
	certificate, err := readFile(pair[0])
	if err != nil {
		return tls.Certificate{}, err
	}
	key := certificate
	if pair[1] != "" {
		if key, err = readFile(pair[1]); err != nil {
			return tls.Certificate{}, err
		}
	}
	made, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("%s: %w", pair[0], err)
	}
	return made, nil
}

func readFile(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > fileBytesMax {
		return nil, fmt.Errorf("%s: want a file of at most %d bytes", name, fileBytesMax)
	}
	return os.ReadFile(name)
}

// leading is a transport that leads requests for a registry's host to another place; those for others, which give tokens, go there.
type leading struct {
	http.RoundTripper
	host, registry string
	to             place
}

// RoundTrip implements http.RoundTripper.
func (l *leading) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Host != l.host {
		return l.RoundTripper.RoundTrip(request)
	}
	led := request.Clone(request.Context())
	led.URL.Scheme, led.URL.Host, led.Host = l.to.url.Scheme, l.to.url.Host, ""
	led.URL.Path, led.URL.RawPath = l.to.url.Path+strings.TrimPrefix(request.URL.Path, "/v2"), ""
	if l.to.url.Host != l.host { // a mirror of several registries tells them apart by it, as containerd asks
		query := led.URL.Query()
		query.Set("ns", l.registry)
		led.URL.RawQuery = query.Encode()
	}
	for name, values := range l.to.headers {
		led.Header[name] = values
	}
	return l.RoundTripper.RoundTrip(led)
}
