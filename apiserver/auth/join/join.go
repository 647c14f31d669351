package join

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"time"

	"github.com/setpoint-io/setpoint/apiserver/auth/pki"
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
	// Addresses are the machine's IP addresses for its certificate.
	Addresses []string
	// Logger hears of failed rounds. Nil: nobody does.
	Logger *slog.Logger
}

// LoadOrJoin returns what a node holds: from <dir>/pki if it is there and has a third of
// its life left, else by joining, and saves it there. It tries until it succeeds, the
// context ends, or a server gives an answer that trying again does not change.
func LoadOrJoin(ctx context.Context, dir string, config Config) (*pki.Node, error) {
	node, err := pki.LoadNode(dir)
	if err == nil && node.Identity.Fits(config.NodeName, time.Now()) {
		return node, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if node, err = Join(ctx, config); err != nil {
		return nil, err
	}
	return node, node.Save(dir)
}

// Join has a fresh key signed. It fails as LoadOrJoin does.
func Join(ctx context.Context, config Config) (*pki.Node, error) {
	token, err := pki.ParseToken(config.Token)
	if err != nil {
		return nil, err
	}
	if len(config.Servers) == 0 {
		return nil, ErrNoServers
	}
	if err := pki.ValidateNodeName(config.NodeName); err != nil {
		return nil, err
	}
	log := config.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	for pause := retryMin; ; pause = min(2*pause, retryMax) {
		node, err := round(ctx, config, token)
		if err == nil || terminal(err) {
			return node, err
		}
		log.Warn("cannot join yet", "node", config.NodeName, "retryIn", pause, "error", err)
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("join: %w: %w", context.Cause(ctx), err)
		case <-time.After(pause):
		}
	}
}

// round asks every server once, until one gives an answer that stands.
func round(ctx context.Context, config Config, token pki.Token) (*pki.Node, error) {
	var failures []error
	for _, server := range config.Servers {
		attempt, cancel := context.WithTimeout(ctx, attemptTimeout)
		node, err := joinAt(attempt, server, config, token)
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
