package join

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/setpoint-io/setpoint/internal/trust"
	"github.com/setpoint-io/setpoint/internal/trust/tokens"
)

const (
	// retryMin and retryMax bound the pause between rounds over all servers.
	retryMin = time.Second
	retryMax = 15 * time.Second
	// attemptTimeout bounds one attempt at one server.
	attemptTimeout = 10 * time.Second
)

// Config of the agent's side.
type Config struct {
	// Servers are host:port; they are tried in this order.
	Servers []string
	// Token is the join token's text.
	Token    string
	NodeName string
	// KeyPEM is the machine's private key (trust.NodeKey).
	KeyPEM []byte
	// Through, if not nil, wraps the transport of each request.
	Through func(http.RoundTripper) http.RoundTripper
	// Now is the time by which certificates are judged; nil: the process's.
	Now func() time.Time
	// Logger gets failed attempts. Nil: they are not logged.
	Logger *slog.Logger
}

// Join has the machine's key certified for a node. It tries until it succeeds, the
// context ends, or a server gives an answer that trying again does not change.
func Join(ctx context.Context, config Config) (*trust.Node, error) {
	token, err := tokens.Parse(config.Token)
	if err != nil {
		return nil, err
	}
	if token.Role != tokens.RoleNode {
		return nil, ErrNotForAgents
	}
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	if len(config.Servers) == 0 {
		return nil, ErrNoServers
	}
	ask, err := newQuestion(config.NodeName, config.KeyPEM, token.Pin)
	if err != nil {
		return nil, err
	}
	ask.Token, ask.through, ask.now = token.Text(), config.Through, config.Now
	var node *trust.Node
	err = persist(ctx, config.Servers, config.Logger.With("node", config.NodeName), func(ctx context.Context, server string) (err error) {
		node, err = ask.at(ctx, server)
		return err
	})
	return node, err
}

// persist asks servers in rounds until one gives an answer, or one that trying again does not change, or the context ends.
func persist(ctx context.Context, servers []string, log *slog.Logger, ask func(ctx context.Context, server string) error) error {
	for pause := retryMin; ; pause = min(2*pause, retryMax) {
		err := round(ctx, servers, ask)
		if err == nil || IsFinal(err) {
			return err
		}
		log.Warn("cannot join yet", "retryIn", pause, "err", err)
		select {
		case <-ctx.Done():
			return fmt.Errorf("join: %w: %w", context.Cause(ctx), err)
		case <-time.After(pause):
		}
	}
}

// Renew has a node's key certified anew, by whichever server answers first. The
// certificate that the node holds is the proof, so it must not have ended.
func Renew(ctx context.Context, servers []string, name string, node *trust.Node) (*trust.Node, error) {
	return renew(ctx, servers, name, node, nil, nil)
}

func renew(
	ctx context.Context, servers []string, name string, node *trust.Node, through func(http.RoundTripper) http.RoundTripper,
	now func() time.Time,
) (*trust.Node, error) {
	pins, err := node.Identity.Pins()
	if err != nil {
		return nil, err
	}
	ask, err := newQuestion(name, node.Identity.KeyPEM, pins...)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(node.Identity.CertPEM, node.Identity.KeyPEM)
	if err != nil {
		return nil, err
	}
	ask.shown, ask.through, ask.now = []tls.Certificate{pair}, through, now
	var renewed *trust.Node
	err = round(ctx, servers, func(ctx context.Context, server string) (err error) {
		renewed, err = ask.at(ctx, server)
		return err
	})
	return renewed, err
}

// round asks every server once, until one gives an answer that stands.
func round(ctx context.Context, servers []string, ask func(ctx context.Context, server string) error) error {
	if len(servers) == 0 {
		return ErrNoServers
	}
	var failures []error
	for _, server := range servers {
		attempt, cancel := context.WithTimeout(ctx, attemptTimeout)
		err := ask(attempt, server)
		cancel()
		if err == nil {
			return nil
		}
		err = fmt.Errorf("join at %s: %w", server, err)
		if IsFinal(err) {
			return err
		}
		failures = append(failures, err)
	}
	return errors.Join(failures...)
}

// IsFinal reports whether an error is an answer that trying again does not change. That a server is of an older release is none: its
// upgrade changes it, and behind its address may be newer ones too.
func IsFinal(err error) bool {
	for _, stands := range []error{ErrTokenRefused, ErrServerTokenRefused, ErrRefused, ErrWrongCluster, ErrClocksDiffer} {
		if errors.Is(err, stands) {
			return true
		}
	}
	return false
}
