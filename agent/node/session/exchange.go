package session

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"connectrpc.com/connect"

	"github.com/setpoint-io/setpoint/agent/node/session/sessionpb"
	"github.com/setpoint-io/setpoint/agent/node/session/sessionpb/sessionpbconnect"
	"github.com/setpoint-io/setpoint/internal/aligned"
)

const (
	// digestInterval is how often a digest is sent when nothing has changed: to all peers at the same moments.
	digestInterval = 3 * time.Second
	// digestGap is the least time between two digests to one peer: what changes
	// within it travels together.
	digestGap = 50 * time.Millisecond
	// digestTimeout bounds one exchange.
	digestTimeout = 2 * time.Second
	// digestRetryInterval is how long a failed exchange waits for the next try.
	digestRetryInterval = time.Second
	// digestLimitBytes bounds a digest: nodesLimit sessions and opinions.
	digestLimitBytes = 4 << 20
)

// Peer is another server.
type Peer struct {
	Name string
	// Voter says that it counts for a majority.
	Voter bool
	// Client and URL ("https://host:port") reach it.
	Client *http.Client
	URL    string
}

// ExchangeConfig is how one server tells the others.
type ExchangeConfig struct {
	// Table says which peers there are.
	Table *Table
	// View is this server's gossip; nil for none. It may call the Table.
	View   func() View
	Logger *slog.Logger
}

// Exchange tells each peer of every change at once, and of everything every 3 s.
type Exchange struct{ config ExchangeConfig }

// NewExchange makes the exchange; its Run must run.
func NewExchange(config ExchangeConfig) *Exchange { return &Exchange{config} }

// Handler returns the service for peers and the path prefix to mount it at. The
// caller lets only servers in.
func (e *Exchange) Handler() (prefix string, handler http.Handler) {
	return sessionpbconnect.NewDigestServiceHandler(e, connect.WithReadMaxBytes(digestLimitBytes))
}

// Exchange implements sessionpbconnect.DigestServiceHandler.
func (e *Exchange) Exchange(
	_ context.Context,
	r *connect.Request[sessionpb.ExchangeRequest],
) (*connect.Response[sessionpb.ExchangeResponse], error) {
	if err := e.config.Table.merge(r.Msg.GetDigest()); err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, err)
	}
	return connect.NewResponse(&sessionpb.ExchangeResponse{Digest: e.digest()}), nil
}

// Run exchanges digests with every peer of the Table until ctx ends.
func (e *Exchange) Run(ctx context.Context) error {
	var running sync.WaitGroup
	defer running.Wait()
	talks := map[string]talk{}
	for {
		peers, changed := e.config.Table.present()
		for name, talk := range talks {
			if now, present := peers[name]; !present || now.URL != talk.url {
				talk.end()
				delete(talks, name)
			}
		}
		for name, p := range peers {
			if _, begun := talks[name]; !begun {
				peerCtx, end := context.WithCancel(ctx)
				talks[name] = talk{p.URL, end}
				running.Go(func() { e.runPeer(peerCtx, p) })
			}
		}
		select {
		case <-ctx.Done():
			for _, talk := range talks {
				talk.end()
			}
			return nil
		case <-changed:
		}
	}
}

// talk is the exchange with one peer.
type talk struct {
	url string
	end context.CancelFunc
}

func (e *Exchange) digest() *sessionpb.Digest {
	var view View
	if e.config.View != nil {
		view = e.config.View()
	}
	return e.config.Table.digest(view)
}

func (e *Exchange) runPeer(ctx context.Context, p Peer) {
	client := sessionpbconnect.NewDigestServiceClient(p.Client, p.URL, connect.WithReadMaxBytes(digestLimitBytes))
	var failing bool
	for ctx.Err() == nil {
		news := e.config.Table.newsAfter()
		err := e.exchange(ctx, client, p)
		if err != nil && !failing && ctx.Err() == nil {
			e.config.Logger.Debug("sessions not exchanged", "server", p.Name, "err", err)
		}
		failing = err != nil
		if failing {
			pause(ctx, digestRetryInterval, nil)
			continue
		}
		told := time.Now()
		pause(ctx, aligned.Until(told, digestInterval), news)
		pause(ctx, digestGap-time.Since(told), nil)
	}
}

func (e *Exchange) exchange(ctx context.Context, client sessionpbconnect.DigestServiceClient, p Peer) error {
	ctx, cancel := context.WithTimeout(ctx, digestTimeout)
	defer cancel()
	response, err := client.Exchange(ctx, connect.NewRequest(&sessionpb.ExchangeRequest{Digest: e.digest()}))
	if err != nil {
		return err
	}
	if got := response.Msg.GetDigest().GetServer(); got != p.Name {
		return fmt.Errorf("%w: asked %s, answered %q", ErrUnknownPeer, p.Name, got)
	}
	return e.config.Table.merge(response.Msg.GetDigest())
}

// pause waits for a time, for ctx, or until early is closed.
func pause(ctx context.Context, d time.Duration, early <-chan struct{}) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-early:
	}
}
