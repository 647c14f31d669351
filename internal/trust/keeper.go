package trust

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/setpoint-io/setpoint/internal/clusterclock"
)

const (
	// RenewInterval is how often certificates are looked at. It is short beside their
	// life, so that a clock that was wrong for long is noticed soon.
	RenewInterval = 10 * time.Minute
	// RenewRetryInterval is how long a failed renewal waits at most for the next try.
	RenewRetryInterval = time.Hour
	// ExpiryWarning is how long before its end a certificate is warned of.
	ExpiryWarning = 30 * 24 * time.Hour
	// AuthorityWarning is that of an authority: nothing renews it but a person, and whoever knows it has to be told of another one.
	AuthorityWarning = 180 * 24 * time.Hour
	// expiryWarnInterval is how often the log warns of the same certificates.
	expiryWarnInterval = 24 * time.Hour
)

// Keeper renews what one server holds while it runs. It is safe for concurrent use.
type Keeper struct {
	cluster *Cluster
	server  Server
	live    *Live
	clock   clock.Clock
	log     *slog.Logger
	// mu keeps one renewal of the server's certificate from another.
	mu sync.Mutex
}

// NewKeeper takes the server's certificate from the trust folder. One that has ended
// while the server was off is made anew.
func NewKeeper(cluster *Cluster, server Server, clock clock.Clock, log *slog.Logger) (*Keeper, error) {
	id, err := cluster.Server(server, clock.Now())
	if err != nil {
		return nil, err
	}
	live, err := NewLive(id)
	if err != nil {
		return nil, err
	}
	return &Keeper{cluster: cluster, server: server, live: live.By(clock.Now), clock: clock, log: log}, nil
}

// Live is the server's identity.
func (k *Keeper) Live() *Live { return k.live }

// Run renews the server's certificate and the administrator's when a third of their life
// is left, and warns of what nobody renews, until ctx ends.
func (k *Keeper) Run(ctx context.Context) {
	var warned time.Time
	for {
		now, pause := k.clock.Now(), RenewInterval
		if err := k.renew(now); err != nil {
			k.log.Error("certificates were not renewed", "nextTry", RenewRetryInterval, "err", err)
			pause = RenewRetryInterval
		}
		if now.Sub(warned) >= expiryWarnInterval {
			k.warn(now)
			warned = now
		}
		if !clusterclock.Wait(ctx, k.clock, pause) {
			return
		}
	}
}

func (k *Keeper) renew(now time.Time) error {
	k.mu.Lock()
	var own error
	if k.live.NeedsRenewal(now) {
		own = k.renewOwn(now)
	}
	k.mu.Unlock()
	return errors.Join(own, k.cluster.RenewAdmin(now))
}

// Renew makes and uses another certificate for the server, with another key, however long the one in use is valid. One that cannot be
// saved is not used, and the error says so: after a restart the old key would be back.
func (k *Keeper) Renew(now time.Time) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	id, err := k.cluster.anotherServer(k.server, now)
	if err != nil {
		return fmt.Errorf("another certificate was not saved: %w", err)
	}
	k.log.Info("the certificate was renewed", "server", k.server.Name, "expires", id.Expires())
	return k.live.Renew(id)
}

// FollowAuthorities makes the server's certificate, the administrator's and the kubeconfigs of the folder those of the cluster's
// authorities of now. What is right already stays as it is.
func (k *Keeper) FollowAuthorities(now time.Time) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	id, err := k.cluster.Server(k.server, now)
	if err != nil {
		return fmt.Errorf("another certificate was not saved: %w", err)
	}
	if k.cluster.inMemory() {
		id = k.cluster.kept(k.live.Identity(), id)
	}
	if !id.equal(k.live.Identity()) {
		k.log.Info("the certificate is one of the authority that signs now, and all authorities are believed", "server", k.server.Name)
		if err := k.live.Renew(id); err != nil {
			return err
		}
	}
	return errors.Join(k.cluster.CA.ring.Settle(), k.cluster.followAuthorities(now))
}

// Issued is when the server's certificate in use was made.
func (k *Keeper) Issued() time.Time {
	certificate, err := ParseCertificate(k.live.Identity().CertPEM)
	if err != nil {
		return time.Time{}
	}
	return issuedAt(certificate)
}

// renewOwn uses a certificate that could not be written to the folder all the same.
func (k *Keeper) renewOwn(now time.Time) error {
	id, err := k.cluster.Server(k.server, now)
	if err != nil {
		var issueErr error
		if id, issueErr = k.cluster.CA.IssueServer(k.server, now); issueErr != nil {
			return errors.Join(err, issueErr)
		}
		err = fmt.Errorf("the certificate is renewed, but not saved: %w", err)
	}
	k.log.Info("the certificate was renewed", "server", k.server.Name, "expires", id.Expires())
	return errors.Join(err, k.live.Renew(id))
}

// Expiries are when the server's certificates end.
func (k *Keeper) Expiries() []Expiry {
	return []Expiry{
		{KindServer, k.server.Name, k.live.Identity().Expires()},
		{KindAdministrator, k.server.Name, k.cluster.AdminExpires()},
		{KindAuthority, "", k.cluster.CA.Expires()},
	}
}

func (k *Keeper) warn(now time.Time) {
	for _, e := range k.Expiries() {
		if e.EndsSoon(now) {
			k.log.Warn("a certificate ends soon", "certificate", e.Kind, "expires", e.Expires)
		}
	}
}
