package join

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"time"

	"k8s.io/utils/clock"

	"github.com/setpoint-io/setpoint/internal/trust"
)

// renewRetryMin is how long an agent waits after its first failed renewal; each further
// pause is twice as long, up to trust.RenewRetryInterval.
const renewRetryMin = 5 * time.Second

// Membership is what an agent holds after it has joined, renewed while it runs.
type Membership struct {
	config MembershipConfig
	held   *trust.Node
	// saved is what the data directory has: nil while a disk that refuses may have left it with anything.
	saved *trust.Node
	// client is what the agent shows to servers; serving, which may hold nothing yet,
	// what it shows to those that call it.
	client, serving trust.Live
	// told are the authorities that servers have told last.
	told told
}

// MembershipConfig is who an agent is, and where it keeps what it holds.
type MembershipConfig struct {
	NodeName, DataDir string
	// Servers are those that there are now, host:port. It is asked before each round over them.
	Servers func() []string
	// Token returns the text of a join token; it is asked only when one is needed.
	// Nil: there is none.
	Token func(context.Context) (string, error)
	// Through, if not nil, wraps the transport of each request to a server.
	Through func(http.RoundTripper) http.RoundTripper
	// Believed, if not nil, is told what the authorities call their keys that are believed from now on.
	Believed func(keyIDs []string)
	// Clock is the time by which certificates end and are renewed; nil: the process's.
	Clock clock.Clock
	// Logger hears of renewals and of what fails. It is required.
	Logger *slog.Logger
}

// Open returns what the data directory holds. A certificate that is valid is enough;
// otherwise the machine joins with a token, and with the key that it has had if it had
// one. It fails as Join does, and with ErrNoToken or ErrCertificateEnded.
func Open(ctx context.Context, config MembershipConfig) (*Membership, error) {
	config.Clock = cmp.Or[clock.Clock](config.Clock, clock.RealClock{})
	m := &Membership{config: config, told: told{wake: make(chan struct{}, 1)}}
	m.client.By(config.Clock.Now)
	m.serving.By(config.Clock.Now)
	node, err := trust.LoadNode(config.DataDir)
	missing := ErrNoToken
	switch {
	case err == nil && node.Valid(config.NodeName, config.Clock.Now()):
		m.saved = node
		return m, m.use(node)
	case err == nil:
		missing = ErrCertificateEnded
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	if config.Token == nil {
		return nil, missing
	}
	token, err := config.Token(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", missing, err)
	}
	return m, m.join(ctx, token)
}

// join saves the key before anybody certifies it: the name belongs to it from then on.
func (m *Membership) join(ctx context.Context, token string) error {
	c := &m.config
	keyPEM, err := trust.NodeKey(c.DataDir)
	if err != nil {
		return err
	}
	node, err := Join(ctx, Config{
		Servers: c.Servers(), Token: token, NodeName: c.NodeName, KeyPEM: keyPEM, Through: c.Through, Now: c.Clock.Now, Logger: c.Logger,
	})
	if err != nil {
		return err
	}
	return errors.Join(m.use(node), m.save())
}

// save writes what is held, unless the data directory has it: what a disk has refused is tried again until it takes it.
func (m *Membership) save() error {
	if m.saved == m.held {
		return nil
	}
	m.saved = nil
	if err := m.held.Save(m.config.DataDir); err != nil {
		return err
	}
	m.saved = m.held
	return nil
}

func (m *Membership) use(node *trust.Node) error {
	m.held = node
	if m.config.Believed != nil {
		m.config.Believed(node.Identity.AuthorityKeyIDs())
	}
	if node.Serving != nil {
		if err := m.serving.Renew(node.Serving); err != nil {
			return err
		}
	}
	return m.client.Renew(node.Identity)
}

// Client is the identity with which the agent calls servers.
func (m *Membership) Client() *trust.Live { return &m.client }

// Serving is the identity with which the agent serves; it may hold nothing yet.
func (m *Membership) Serving() *trust.Live { return &m.serving }

// Node is what it began with, or, after Run has begun, what Run holds: not for
// concurrent use with Run.
func (m *Membership) Node() *trust.Node { return m.held }

// Run has the certificates renewed when a third of their life is left, until ctx ends.
// That needs no token: the certificate that ends is the proof.
func (m *Membership) Run(ctx context.Context) {
	retry := renewRetryMin
	for {
		pause := trust.RenewInterval
		if err := m.renew(ctx, m.config.Clock.Now()); err != nil {
			m.config.Logger.Warn(
				"the node's certificates were not renewed",
				"expires",
				m.held.Identity.Expires(),
				"nextTry",
				retry,
				"err",
				err,
			)
			pause, retry = retry, min(2*retry, trust.RenewRetryInterval)
		} else {
			retry = renewRetryMin
		}
		if !m.wait(ctx, pause) {
			return
		}
	}
}

// wait returns after the pause or when servers have told of other authorities, and reports whether ctx goes on.
func (m *Membership) wait(ctx context.Context, pause time.Duration) bool {
	timer := m.config.Clock.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C():
	case <-m.told.wake:
	}
	return true
}

func (m *Membership) renew(ctx context.Context, now time.Time) error {
	news := m.told.newest()
	signs, err := m.believe(news)
	if err != nil {
		return err
	}
	if signs && !m.held.NeedsRenewal(now) {
		m.told.taken(news)
		return nil
	}
	if !m.held.Valid(m.config.NodeName, now) {
		return ErrCertificateEnded
	}
	node, err := renew(ctx, m.config.Servers(), m.config.NodeName, m.held, m.config.Through, m.config.Clock.Now)
	if err != nil {
		return err
	}
	node.GossipKeys = m.held.GossipKeys // the session keeps them
	m.config.Logger.Info("the node's certificates were renewed", "node", m.config.NodeName, "expires", node.Identity.Expires())
	if err := errors.Join(m.use(node), m.save()); err != nil {
		return err
	}
	if signs, err = m.believe(news); err == nil && !signs {
		return errOtherSigner
	}
	m.told.taken(news)
	return err
}
