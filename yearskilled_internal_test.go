package setpoint

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/setpoint-io/setpoint/internal/rotation"
	"github.com/setpoint-io/setpoint/server/admin"
	"github.com/setpoint-io/setpoint/server/rotations"
)

// lostTries and lostPause are how patient clients are with servers that are killed: less than any person is.
const (
	lostTries = 20
	lostPause = 500 * time.Millisecond
)

// backFor is how long after a server is back a request may still be lost because of its crash.
const backFor = 5 * time.Second

// patience says when a request may be lost: while a server is away that was killed, and shortly after that. The zero value is of a cluster
// in which no server was.
type patience struct {
	mu   sync.Mutex
	away int
	end  time.Time
}

// crashed is called before a server is killed, and returned when it is back.
func (p *patience) crashed() (back func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.away++
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.away--
		p.end = time.Now().Add(backFor)
	}
}

func (p *patience) isOn() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.away > 0 || time.Now().Before(p.end)
}

// patiently asks again what was not answered because a server was killed, or what may have been done before that. Any other answer counts,
// one that nobody gives for ten seconds, and one that was lost while all servers ran.
func (p *patience) patiently(do func() error) error {
	err := do()
	for range lostTries {
		if !isLost(err) || !p.isOn() {
			break
		}
		time.Sleep(lostPause)
		err = do()
	}
	return err
}

// isLost reports whether a request ended with its server: not if anybody said no, or believed another's certificate no more.
func isLost(err error) bool {
	var (
		status       apierrors.APIStatus
		verification *tls.CertificateVerificationError
		alert        tls.AlertError
		unknown      x509.UnknownAuthorityError
	)
	if err == nil || errors.As(err, &verification) || errors.As(err, &alert) || errors.As(err, &unknown) {
		return false
	}
	return apierrors.IsTimeout(err) || !errors.As(err, &status)
}

// isCut reports whether a watch ended in the middle of an answer, with its server: the client says so, no server.
func isCut(event watch.Event) bool {
	return event.Type == watch.Error && apierrors.HasStatusCause(apierrors.FromObject(event.Object), metav1.CauseType(cutCause))
}

// cutCause is how client-go calls an answer that it cannot read to its end.
const cutCause = "ClientWatchDecoding"

// again asks again what a server cannot answer that was killed: it is how the test itself asks. What is lost while all servers run counts as
// the test's own request that failed.
type again struct {
	*years
	http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (a again) RoundTrip(r *http.Request) (response *http.Response, err error) {
	for range lostTries {
		response, err = a.RoundTripper.RoundTrip(r)
		unavailable := err == nil && (response.StatusCode == http.StatusServiceUnavailable || response.StatusCode == http.StatusGatewayTimeout)
		if err == nil && !unavailable || r.Context().Err() != nil {
			break
		}
		if !a.isOn() {
			a.noteLost(r, response, err)
			break
		}
		if r.GetBody != nil {
			if r.Body, err = r.GetBody(); err != nil {
				return nil, err
			}
		}
		if unavailable {
			_ = response.Body.Close()
		}
		time.Sleep(lostPause)
	}
	return response, err
}

func (a again) noteLost(r *http.Request, response *http.Response, err error) {
	if err == nil {
		err = fmt.Errorf("%s", response.Status)
	}
	a.note("test", fmt.Errorf("%s %s: %w", r.Method, r.URL.Path, err))
}

// awayFor is how long a server is away that was killed: another one leads long before it is back.
const awayFor = 4 * time.Second

// crash kills a server, and returns what brings it back.
func (y *years) crash(name string) (back func()) {
	y.Helper()
	isBack := y.crashed()
	y.must(y.c.CrashServer(name))
	return func() {
		y.must(y.c.StartServer(y.Context(), name))
		isBack()
	}
}

// killLeader kills the leader, and brings it back.
func (y *years) killLeader() {
	y.Helper()
	back := y.crash(y.leader())
	time.Sleep(awayFor)
	back()
}

func (y *years) leader() string {
	y.Helper()
	y.until("a leader", func() bool { return y.c.Leader() != "" })
	return y.c.Leader()
}

// tryOrder orders something about a rotation.
func (y *years) tryOrder(order rotations.Order) (rotation.Progress, error) {
	config, err := y.c.RESTConfig()
	y.must(err)
	config.Transport = again{y, config.Transport}
	return admin.OrderRotation(y.Context(), config, order)
}

// outside is where clients and agents are: in no replica.
const outside = "outside:1"

// dial reaches a replica in memory, from outside.
func (y *years) dial(ctx context.Context, network, address string) (net.Conn, error) {
	return y.c.network.dialer(outside)(ctx, network, address)
}

// dialAny reaches a replica, or the next one that runs.
func (y *years) dialAny(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := y.dial(ctx, network, address)
	for i := 0; err != nil && i < y.c.config.Replicas; i++ {
		conn, err = y.dial(ctx, network, y.c.endpoint(i))
	}
	return conn, err
}
