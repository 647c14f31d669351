package host

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/agent/node/knownservers"
	"github.com/setpoint-io/setpoint/internal/revocation"
	"github.com/setpoint-io/setpoint/internal/trust"
	"github.com/setpoint-io/setpoint/internal/trust/join"
	"github.com/setpoint-io/setpoint/internal/trust/tokens"
)

// TestNothingIsTakenFromARevokedServer: neither does a machine become a node by one that the kept list names, nor is a certificate
// renewed by one that has been revoked since.
func TestNothingIsTakenFromARevokedServer(t *testing.T) {
	said := make(lines, 1000)
	logger := slog.New(slog.NewTextHandler(said, nil))
	server, token := aServerThatSigns(t)
	o := &Options{Name: "n1", DataDir: t.TempDir(), Servers: []string{server}, TokenFile: filepath.Join(t.TempDir(), "token"), Logger: logger}
	if err := os.WriteFile(o.TokenFile, []byte(token), 0o600); err != nil {
		t.Fatal(err)
	}
	entry := revocation.Entry{Target: revocation.Target{Kind: revocation.Server, Name: "s"}, At: time.Now()}
	list := map[string]string{entry.DataKey(): entry.Text()}
	kept := filepath.Join(o.DataDir, "pki", "revocations.json")
	text, err := json.Marshal(list)
	if err := errors.Join(err, os.MkdirAll(filepath.Dir(kept), 0o700), os.WriteFile(kept, text, 0o600)); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	joining := make(chan error, 1)
	go func() {
		_, err := o.Join(ctx)
		joining <- err
	}()
	said.await(t, joining)
	stop()
	if err := <-joining; err == nil {
		t.Error("it has joined by a server that was revoked")
	}
	if err := os.Remove(kept); err != nil {
		t.Fatal(err)
	}
	said = make(lines, 1000) // without what was said before
	logger = slog.New(slog.NewTextHandler(said, nil))
	o.Logger = logger
	ctx, stop = context.WithCancel(t.Context())
	defer stop()
	life, err := o.life()
	if err != nil {
		t.Fatal(err)
	}
	judge := &revocation.Judge{}
	membership, err := o.join(ctx, life, knownservers.Fixed(o.Servers, logger), judge)
	if err != nil {
		t.Fatal(err)
	}
	membership.Node().Serving = nil // so it is to be renewed
	judge.UseData(list, logger)
	var running sync.WaitGroup
	running.Go(func() { membership.Run(ctx) })
	said.await(t, nil)
	stop()
	running.Wait()
	if membership.Node().Serving != nil {
		t.Error("a certificate was taken from a server that was revoked")
	}
}

// await reads lines until one says that somebody was revoked, or that certificates were renewed, or what is under way has ended.
func (l lines) await(t *testing.T, ended chan error) {
	t.Helper()
	for {
		select {
		case line := <-l:
			if strings.Contains(line, "server/s was revoked on") || strings.Contains(line, "were renewed") {
				return
			}
		case err := <-ended:
			ended <- err
			return
		}
	}
}

// aServerThatSigns is s, which lets machines join with the token, and renews what they hold.
func aServerThatSigns(t *testing.T) (endpoint, token string) {
	t.Helper()
	servers := []trust.Server{{Name: "s", Endpoint: "192.0.2.1:6443"}}
	cluster, err := trust.InitCluster(t.TempDir(), servers, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	own, err := cluster.LoadServer("s")
	if err != nil {
		t.Fatal(err)
	}
	config, err := own.ServerConfig()
	if err != nil {
		t.Fatal(err)
	}
	serving, err := cluster.CA.NodeServing()
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(join.NewHandler(join.HandlerConfig{
		Authority: cluster.CA, Serving: serving, GossipKeys: cluster.GossipKeys.Told, Servers: func() []trust.Server { return servers },
		Admits: func(_ context.Context, shown tokens.Token) (bool, error) { return shown == cluster.NodeToken, nil },
		Claim:  func(context.Context, string, string, bool) error { return nil },
		Take:   func(context.Context, string, string) error { return nil },
	}))
	server.TLS = config
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.Listener.Addr().String(), cluster.NodeToken.Text()
}
