package session

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	"connectrpc.com/connect"
	"github.com/google/uuid"

	"github.com/setpoint-io/setpoint/agent/node/session/sessionpb"
	"github.com/setpoint-io/setpoint/agent/node/session/sessionpb/sessionpbconnect"
)

const (
	// openTimeout bounds how long a server may take to accept a session.
	openTimeout = time.Second
	// answerTimeout is how long a ping may stay unanswered.
	answerTimeout = 2 * time.Second
	// pingsPerDeadline: four pings may get lost.
	pingsPerDeadline = 5
	// pingJitterPercent spreads the pings of many agents.
	pingJitterPercent = 10
	// pingIntervalMin bounds what a server may ask for.
	pingIntervalMin = 100 * time.Millisecond
	// roundPauseMin and roundPauseMax bound the pause after every server refused.
	roundPauseMin = 100 * time.Millisecond
	roundPauseMax = time.Second
	// gossipAddressesMax bounds the addresses taken from one answer.
	gossipAddressesMax = 32
	// goodbyeTimeout bounds how long an agent that stops waits for its server.
	goodbyeTimeout = time.Second
)

// Client is an agent's side: one session to one of several servers.
type Client struct {
	// Servers are the base URLs of those that there are now, "https://host:port"; at least one. It is asked before each try.
	Servers func() []string
	// HTTP speaks HTTP/2 with the node's certificate.
	HTTP *http.Client
	// GossipAddresses, if set, is called with each answer of the server: where the
	// servers gossip. It must not block.
	GossipAddresses func(addresses []string)
	// Told, if set, is called with each answer too: from which of Servers it came, and which servers there are, host:port, at most
	// ServersMax; none if the server does not tell. The connection has proved that it is a server. It must not block for long.
	Told func(from string, servers []string)
	// RingHeld, if set, is what the agent holds of the keys of gossip: each message says it. Ring, if set, is called with an answer
	// that says what it is to hold instead. Neither may block for long.
	RingHeld func() RingHeld
	Ring     func(Ring)
	// AuthoritiesHeld, if set, are the hashes of the authorities that the agent believes, that of its own certificates first: each message
	// says them. Authorities, if set, is called with an answer that says which it is to believe instead, in PEM. Neither may block for long.
	AuthoritiesHeld func() []string
	Authorities     func(pem []byte)
	Logger          *slog.Logger

	instance string
	counter  uint64
	server   string // with which the session is
}

// Run keeps a session until ctx ends, then says goodbye. When a session breaks it
// goes to the next server at once.
func (c *Client) Run(ctx context.Context) error {
	c.instance = uuid.NewString()
	server, failed := "", 0
	for ctx.Err() == nil {
		servers := c.Servers()
		if len(servers) == 0 {
			return errors.New("session: no servers")
		}
		server = after(servers, server)
		opened, err := c.keep(ctx, server)
		if ctx.Err() != nil {
			break
		}
		c.Logger.Debug("session ended", "server", server, "opened", opened, "err", err)
		if failed++; opened {
			failed = 0
		}
		if rounds := failed / len(servers); rounds > 0 && failed%len(servers) == 0 {
			pause(ctx, min(roundPauseMax, roundPauseMin<<min(rounds-1, 10)), nil)
		}
	}
	return nil
}

// after is the server that follows one of the list, or any of them if that is in it no more.
func after(servers []string, last string) string {
	at := slices.Index(servers, last)
	if at < 0 {
		return servers[rand.IntN(len(servers))]
	}
	return servers[(at+1)%len(servers)]
}

// conversation is one session while it lasts.
type conversation struct {
	stream  *connect.BidiStreamForClient[sessionpb.KeepRequest, sessionpb.KeepResponse]
	answers chan *sessionpb.KeepResponse
	broken  chan error
	over    chan struct{} // closed by converse: nobody reads answers any more
}

// keep holds one session with one server until it breaks or ctx ends.
func (c *Client) keep(ctx context.Context, server string) (opened bool, err error) {
	// The goodbye is sent after ctx has ended, also when that is while the
	// session opens: the server may have it already.
	streamCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	c.counter++
	c.server = server
	client := sessionpbconnect.NewSessionServiceClient(c.HTTP, server, connect.WithReadMaxBytes(answerLimitBytes))
	stream := client.Keep(streamCtx)
	hangUp := func() {
		cancel()
		_ = stream.CloseRequest() // HTTP/2 looks at the context only when it has no body left to read
	}
	defer hangUp()
	giveUp := time.AfterFunc(openTimeout, hangUp)
	defer giveUp.Stop()

	hello := c.request()
	hello.Instance, hello.Counter = c.instance, c.counter
	if err := stream.Send(hello); err != nil {
		_, err = stream.Receive() // it knows why
		return false, err
	}
	first, err := stream.Receive()
	if err != nil {
		return false, err
	}
	if !giveUp.Stop() {
		return false, streamCtx.Err()
	}
	c.Logger.Debug("session opened", "server", server)
	return true, c.converse(ctx, hangUp, stream, first)
}

// hear takes an answer and returns when to ping next.
func (c *Client) hear(answer *sessionpb.KeepResponse) time.Duration {
	another := c.hearRing(answer.GetGossipRing())
	if told := answer.GetAuthoritiesPem(); len(told) > 0 && c.Authorities != nil {
		c.Authorities(told)
	}
	if c.GossipAddresses != nil {
		addresses := answer.GetGossipAddresses()
		c.GossipAddresses(addresses[:min(len(addresses), gossipAddressesMax)])
	}
	if c.Told != nil {
		servers := answer.GetServers()
		c.Told(c.server, servers[:min(len(servers), ServersMax)])
	}
	if another {
		return pingIntervalMin // whoever replaces keys waits for what this agent holds now
	}
	return pingInterval(answer)
}

// converse pings and expects answers; it hangs up when it returns.
func (c *Client) converse(
	ctx context.Context,
	hangUp func(),
	stream *connect.BidiStreamForClient[sessionpb.KeepRequest, sessionpb.KeepResponse],
	first *sessionpb.KeepResponse,
) error {
	v := &conversation{stream: stream, answers: make(chan *sessionpb.KeepResponse), broken: make(chan error, 1), over: make(chan struct{})}
	var listener sync.WaitGroup
	listener.Go(v.listen)
	defer listener.Wait()
	defer hangUp()
	defer close(v.over)
	ping := time.NewTimer(c.hear(first))
	defer ping.Stop()
	overdue := time.NewTimer(0)
	defer overdue.Stop()
	overdue.Stop()
	for {
		select {
		case <-ctx.Done():
			return v.goodbye()
		case err := <-v.broken:
			return err
		case <-overdue.C:
			return errSilent
		case answer := <-v.answers:
			overdue.Stop()
			ping.Reset(c.hear(answer))
		case <-ping.C:
			if err := stream.Send(c.request()); err != nil {
				return fmt.Errorf("ping: %w", err)
			}
			overdue.Reset(answerTimeout)
		}
	}
}

// listen passes on what the server says.
func (v *conversation) listen() {
	for {
		answer, err := v.stream.Receive()
		if err != nil {
			v.broken <- err
			return
		}
		select {
		case v.answers <- answer:
		case <-v.over:
			return
		}
	}
}

// goodbye ends the session in good order: the server's end of the stream is the
// proof that it has read it.
func (v *conversation) goodbye() error {
	if err := v.stream.Send(&sessionpb.KeepRequest{Goodbye: true}); err != nil {
		return fmt.Errorf("goodbye: %w", err)
	}
	if err := v.stream.CloseRequest(); err != nil {
		return fmt.Errorf("goodbye: %w", err)
	}
	timeout := time.NewTimer(goodbyeTimeout)
	defer timeout.Stop()
	for {
		select {
		case <-v.broken:
			return nil
		case <-v.answers:
		case <-timeout.C:
			return errSilent
		}
	}
}

// pingInterval divides the server's deadline, so that pings may get lost.
func pingInterval(answer *sessionpb.KeepResponse) time.Duration {
	interval := time.Duration(answer.GetDeadlineMilliseconds()) * time.Millisecond / pingsPerDeadline
	jitter := (rand.Float64()*2 - 1) * pingJitterPercent / 100
	return max(pingIntervalMin, interval+time.Duration(jitter*float64(interval)))
}
