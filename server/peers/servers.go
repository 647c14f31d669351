package peers

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"sync"

	"github.com/setpoint-io/setpoint/internal/failover"
	"github.com/setpoint-io/setpoint/internal/revocation"
	"github.com/setpoint-io/setpoint/internal/trust"
)

// RaftProtocol is the ALPN name by which replicas reach each other on the API's port.
const RaftProtocol = "raft/1"

// Dial opens a connection to a server, before anything is said; nil: over the network.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// RaftDialer opens Raft connections to servers, each pinned to its name. None is opened, or stays open, to one whom judge knows to be
// revoked.
func RaftDialer(
	identity *trust.Live, dial Dial, judge *revocation.Judge,
) (func(ctx context.Context, address, serverID string) (net.Conn, error), error) {
	config, err := identity.ClientConfig()
	if err != nil {
		return nil, err
	}
	judge.Guard(config)
	config.NextProtos = []string{RaftProtocol}
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	return func(ctx context.Context, address, serverID string) (net.Conn, error) {
		pinned := config.Clone()
		pinned.RootCAs = identity.Pool()
		pinned.ServerName = serverID // every server's certificate bears its name
		conn, err := dial(ctx, "tcp", address)
		if err != nil {
			return nil, err
		}
		secured := tls.Client(conn, pinned)
		if err := secured.HandshakeContext(ctx); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
		return judge.Watched(secured, revocation.OfConnection(secured.ConnectionState())), nil
	}, nil
}

// Clients calls the services of other servers, each pinned to its name; connections are
// kept, but to those whom judge knows to be revoked. The function returns the client of a server, and its URL at an address.
func Clients(identity *trust.Live, dial Dial, judge *revocation.Judge) (func(serverID, address string) (*http.Client, string), error) {
	base, err := identity.ClientConfig()
	if err != nil {
		return nil, err
	}
	judge.Guard(base)
	transport := func(config *tls.Config) *http.Transport {
		t := failover.Transport(config)
		if dial != nil {
			t.DialContext = dial
		}
		t.DialContext = watching(t.DialContext, judge, revocation.Identity{User: trust.ServerUser(config.ServerName)})
		return t
	}
	var clients sync.Map // server id to *http.Client
	return func(serverID, address string) (*http.Client, string) {
		client, ok := clients.Load(serverID)
		if !ok {
			config := base.Clone()
			config.ServerName = serverID
			client, _ = clients.LoadOrStore(serverID, &http.Client{Transport: trust.NewTransport(identity, config, transport)})
		}
		return client.(*http.Client), "https://" + address
	}, nil
}

// watching closes what dial has opened to somebody when he is revoked.
func watching(dial Dial, judge *revocation.Judge, whom revocation.Identity) Dial {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return judge.Watched(conn, whom), nil
	}
}

// Authorize lets other servers in, by the certificate of their connection.
func Authorize(r *http.Request) error {
	if r.TLS == nil {
		return trust.ErrNotServer
	}
	return trust.RequireServer(*r.TLS)
}
