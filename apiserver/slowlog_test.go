package apiserver

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/internal/trust"
	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/raftstoretest"
	"github.com/setpoint-io/setpoint/raftstore/state"
)

// slowLog is a log whose majority is gone while it is stuck.
type slowLog struct {
	*raftstoretest.Local
	stuck atomic.Bool
}

func newSlowLog() *slowLog { return &slowLog{Local: raftstoretest.NewLocal(state.Options{})} }

func (l *slowLog) Propose(ctx context.Context, c command.Command) (command.Result, error) {
	if l.stuck.Load() {
		<-ctx.Done()
	}
	return l.Local.Propose(ctx, c)
}

func (l *slowLog) ReadIndex(ctx context.Context) (*state.Root, error) {
	if l.stuck.Load() {
		<-ctx.Done()
	}
	return l.Local.ReadIndex(ctx)
}

// discard is a response that nobody reads.
type discard struct {
	header http.Header
	code   int
}

func (d *discard) Header() http.Header { return d.header }

func (d *discard) WriteHeader(code int) { d.code = code }

func (d *discard) Write(b []byte) (int, error) {
	if d.code == 0 {
		d.code = http.StatusOK
	}
	return len(b), nil
}

// adminConnection is what a handshake with the administrator's certificate leaves.
func adminConnection(t *testing.T) *tls.ConnectionState {
	t.Helper()
	ca, err := trust.NewCA(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	identity, err := ca.IssueAdmin(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := trust.ParseCertificate(identity.CertPEM)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{certificate}}}
}
