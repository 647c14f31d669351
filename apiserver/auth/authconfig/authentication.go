package authconfig

import (
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

	"github.com/setpoint-io/setpoint/internal/reread"
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
	// OwnIssuer makes the cluster's own tokens: no other may bear its name. An https URL; "" is tokens.DefaultIssuer.
	OwnIssuer string
	// Audiences are those that the API answers to.
	Audiences []string
	Logger    *slog.Logger
}

// Validate says what is wrong with the flags, and with the files that they name.
func (c Config) Validate() error {
	if err := c.exclusive(); err != nil {
		return err
	}
	text, err := c.read()
	if err != nil {
		return err
	}
	_, err = c.judge(text)
	return err
}

func (c Config) exclusive() error {
	switch {
	case (c.OIDC.IssuerURL == "") != (c.OIDC.ClientID == ""):
		return errClient
	case c.OIDC.IssuerURL != "" && c.File != "":
		return errTwoSources
	}
	return nil
}

// read returns the text of the file; nil without one.
func (c Config) read() ([]byte, error) {
	if c.File == "" {
		return nil, nil
	}
	return os.ReadFile(c.File)
}

// judge makes what the file says, or the flags without one, and says what is wrong with it.
func (c Config) judge(text []byte) (*apiserver.AuthenticationConfiguration, error) {
	switch {
	case c.File != "":
		parsed, err := parse(text)
		if err == nil {
			err = validate(parsed, c.OwnIssuer)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.File, err)
		}
		return parsed, nil
	case c.OIDC.IssuerURL != "":
		given, err := c.OIDC.configuration()
		if err == nil {
			err = validate(given, c.OwnIssuer)
		}
		if err != nil {
			return nil, fmt.Errorf("the --oidc- flags: %w", err)
		}
		return given, nil
	default:
		return &apiserver.AuthenticationConfiguration{}, nil
	}
}

// generation makes what a text says ready. What it starts ends with ctx.
func (c Config) generation(ctx context.Context, text []byte) (*generation, error) {
	given, err := c.judge(text)
	if err != nil {
		return nil, err
	}
	return newGeneration(ctx, given, c)
}

// Authentication answers for the configuration in force. It is safe for concurrent use.
type Authentication struct {
	config  Config
	current atomic.Pointer[generation]

	// What only Run uses after New:
	file *reread.Follower // nil without a file
	told reread.Told      // of issuers
}

// New reads the configuration and begins to ask the issuers for their keys, until ctx
// ends. It does not wait for them.
func New(ctx context.Context, config Config) (*Authentication, error) {
	if err := config.exclusive(); err != nil {
		return nil, err
	}
	text, err := config.read()
	if err != nil {
		return nil, err
	}
	first, err := config.generation(ctx, text)
	if err != nil {
		return nil, err
	}
	a := &Authentication{config: config}
	a.current.Store(first)
	if config.File != "" {
		a.file = reread.New(reread.Config{
			Every: reloadInterval, Read: config.read, Judge: a.prepare,
			Warning: "the authentication configuration was not taken; the former one stays in force", Logger: config.Logger,
		}, text)
	}
	return a, nil
}

// AuthenticateToken implements authenticator.Token.
func (a *Authentication) AuthenticateToken(ctx context.Context, token string) (*authenticator.Response, bool, error) {
	return a.current.Load().tokens.AuthenticateToken(ctx, token)
}

// AdmitsAnonymous reports whether a request without credentials is accepted as the anonymous user.
func (a *Authentication) AdmitsAnonymous(r *http.Request) bool {
	return a.current.Load().admitsAnonymous(r.URL.Path)
}

// Run reads the file again and again, and looks at the issuers, until ctx ends.
func (a *Authentication) Run(ctx context.Context) {
	ticker := time.NewTicker(reloadInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			if a.file != nil {
				_ = a.file.Look(ctx) // it has told
			}
			a.warnOfIssuers()
		}
	}
}

// prepare makes the next generation, which is in force when its issuers answer.
func (a *Authentication) prepare(ctx context.Context, text []byte) (reread.Next, error) {
	next, err := a.config.generation(ctx, text)
	if err != nil {
		return reread.Next{}, err
	}
	return reread.Next{Drop: next.cancel, Apply: func(context.Context) error {
		if err := next.unhealthy(); err != nil {
			return fmt.Errorf("an issuer of tokens has not answered yet: %w", err)
		}
		former := a.current.Swap(next)
		time.AfterFunc(retireAfter, former.cancel)
		a.config.Logger.Info("the authentication configuration has changed", "file", a.config.File)
		return nil
	}}, nil
}

// warnOfIssuers says the same only once.
func (a *Authentication) warnOfIssuers() {
	if err := a.current.Load().unhealthy(); a.told.IsNew("", err) {
		a.config.Logger.Warn("an issuer of tokens does not answer; its users cannot come in", "err", err)
	}
}
