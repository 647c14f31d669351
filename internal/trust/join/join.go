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
	// Logger gets failed attempts. Nil: they are not logged.
	Logger *slog.Logger
}

// Join has the machine's key certified for a node. It tries until it succeeds, the
// context ends, or a server gives an answer that trying again does not change.
func Join(ctx context.Context, config Config) (*trust.Node, error) {
	token, err := trust.ParseToken(config.Token)
	if err != nil {
		return nil, err
	}
	if len(config.Servers) == 0 {
		return nil, ErrNoServers
	}
	ask, err := newQuestion(config.NodeName, config.KeyPEM, token.Pin)
	if err != nil {
		return nil, err
	}
	ask.Token, ask.through = token.Text(), config.Through
	log := config.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	for pause := retryMin; ; pause = min(2*pause, retryMax) {
		node, err := round(ctx, config.Servers, ask)
		if err == nil || terminal(err) {
			return node, err
		}
		log.Warn("cannot join yet", "node", config.NodeName, "retryIn", pause, "err", err)
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("join: %w: %w", context.Cause(ctx), err)
		case <-time.After(pause):
		}
	}
}

// Renew has a node's key certified anew, by whichever server answers first. The
// certificate that the node holds is the proof, so it must not have ended.
func Renew(ctx context.Context, servers []string, name string, node *trust.Node) (*trust.Node, error) {
	return renew(ctx, servers, name, node, nil)
}

func renew(
	ctx context.Context, servers []string, name string, node *trust.Node, through func(http.RoundTripper) http.RoundTripper,
) (*trust.Node, error) {
	authority, err := trust.ParseCertificate(node.Identity.CAPEM)
	if err != nil {
		return nil, err
	}
	ask, err := newQuestion(name, node.Identity.KeyPEM, trust.Pin(authority))
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(node.Identity.CertPEM, node.Identity.KeyPEM)
	if err != nil {
		return nil, err
	}
	ask.shown, ask.through = []tls.Certificate{pair}, through
	return round(ctx, servers, ask)
}

// round asks every server once, until one gives an answer that stands.
func round(ctx context.Context, servers []string, ask *question) (*trust.Node, error) {
	var failures []error
	for _, server := range servers {
		attempt, cancel := context.WithTimeout(ctx, attemptTimeout)
		node, err := ask.at(attempt, server)
		cancel()
		if err == nil {
			return node, nil
		}
		err = fmt.Errorf("join at %s: %w", server, err)
		if terminal(err) {
			return nil, err
		}
		failures = append(failures, err)
	}
	return nil, errors.Join(failures...)
}

func terminal(err error) bool {
	for _, stands := range []error{ErrTokenRefused, ErrRefused, ErrWrongCluster, ErrClocksDiffer} {
		if errors.Is(err, stands) {
			return true
		}
	}
	return false
}
