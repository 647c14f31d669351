package authconfig

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authentication/authenticator"
)

const (
	// reloadInterval is how often the file is read again, and issuers are looked at.
	reloadInterval = 10 * time.Second
	// retireAfter is how long former issuers still answer requests that began with them.
	retireAfter = time.Minute
)

var (
	errTwoSources = errors.New("--authentication-config and the --oidc- flags exclude each other")
	errClient     = errors.New("--oidc-issuer-url and --oidc-client-id belong together")
)

// Config configures OIDC issuers and anonymous requests, beside the cluster's own users. The zero value allows
// anonymous requests and has no issuers.
type Config struct {
	// File is an AuthenticationConfiguration, or empty.
	File string
	// OIDC is one issuer in place of a file, if it has a URL.
	OIDC OIDC
	// Server is the name of this server, for metrics.
	Server string
	// OwnIssuer makes the cluster's own tokens: no other may bear its name.
	OwnIssuer string
	// Audiences are those that the API answers to.
	Audiences []string
	Logger    *slog.Logger
}

// Validate says what is wrong with the flags.
func (c Config) Validate() error {
	switch {
	case (c.OIDC.IssuerURL == "") != (c.OIDC.ClientID == ""):
		return errClient
	case c.OIDC.IssuerURL != "" && c.File != "":
		return errTwoSources
	}
	return nil
}

// Authentication answers for the configuration in force. It is safe for concurrent use.
type Authentication struct {
	config  Config
	current atomic.Pointer[generation]

	// What only Run uses after New:
	text []byte            // of the file as it was read last
	next *generation       // waits for its issuers
	told map[string]string // what was last warned of, by the message
}

// New reads the configuration and begins to ask the issuers for their keys, until ctx
// ends. It does not wait for them.
func New(ctx context.Context, config Config) (*Authentication, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	a := &Authentication{config: config, told: map[string]string{}}
	read, err := a.read()
	if err != nil {
		return nil, err
	}
	first, err := newGeneration(ctx, read, config)
	if err != nil {
		return nil, err
	}
	a.current.Store(first)
	return a, nil
}

func (a *Authentication) read() (*apiserver.AuthenticationConfiguration, error) {
	switch {
	case a.config.File != "":
		text, err := os.ReadFile(a.config.File)
		if err != nil {
			return nil, err
		}
		a.text = text
		read, err := parse(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", a.config.File, err)
		}
		return read, nil
	case a.config.OIDC.IssuerURL != "":
		return a.config.OIDC.configuration()
	default:
		return &apiserver.AuthenticationConfiguration{}, nil
	}
}

// AuthenticateToken implements authenticator.Token.
func (a *Authentication) AuthenticateToken(ctx context.Context, token string) (*authenticator.Response, bool, error) {
	return a.current.Load().tokens.AuthenticateToken(ctx, token)
}

// AdmitsAnonymous reports whether a request without credentials is accepted as the anonymous user.
func (a *Authentication) AdmitsAnonymous(r *http.Request) bool {
	return a.current.Load().admitsAnonymous(r.URL.Path)
}

// Run reads the file again and again, until ctx ends.
func (a *Authentication) Run(ctx context.Context) {
	ticker := time.NewTicker(reloadInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			a.warn("the authentication configuration was not taken; the former one stays in force", a.reload(ctx))
			a.replace()
			a.warnOfIssuers()
		}
	}
}

// reload makes another generation when the file has changed.
func (a *Authentication) reload(ctx context.Context) error {
	if a.config.File == "" {
		return nil
	}
	text, err := os.ReadFile(a.config.File)
	if err != nil {
		return err
	}
	if bytes.Equal(text, a.text) {
		return nil
	}
	read, err := a.read()
	if err != nil {
		return err
	}
	next, err := newGeneration(ctx, read, a.config)
	if err != nil {
		return err
	}
	if a.next != nil {
		a.next.cancel()
	}
	a.next = next
	return nil
}

// replace puts the next generation in force when its issuers answer.
func (a *Authentication) replace() {
	if a.next == nil || a.next.unhealthy() != nil {
		return
	}
	former := a.current.Swap(a.next)
	a.next = nil
	time.AfterFunc(retireAfter, former.cancel)
	a.config.Logger.Info("the authentication configuration has changed", "file", a.config.File)
}

func (a *Authentication) warnOfIssuers() {
	asked := a.current.Load()
	if a.next != nil {
		asked = a.next
	}
	a.warn("an issuer of tokens does not answer; its users cannot come in", asked.unhealthy())
}

// warn says the same of one thing only once, until nothing is wrong with it.
func (a *Authentication) warn(message string, err error) {
	switch {
	case err == nil:
		delete(a.told, message)
	case err.Error() != a.told[message]:
		a.told[message] = err.Error()
		a.config.Logger.Warn(message, "err", err)
	}
}
