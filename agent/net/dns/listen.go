package dns

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/miekg/dns"

	"github.com/setpoint-io/setpoint/agent/base/wait"
	"github.com/setpoint-io/setpoint/agent/net/dns/records"
	"github.com/setpoint-io/setpoint/internal/strangers"
)

// Limits of the listeners.
const (
	// connectionsMax is how many TCP connections are served. Beyond it the oldest of the same client goes, if that has half of them.
	connectionsMax = 256
	// idleMax ends connections that ask nothing, questionsMax those that ask too long.
	idleMax      = 8 * time.Second
	questionsMax = 128
	readMax      = 2 * time.Second
	// questionBytesMax is how large a question may be.
	questionBytesMax = 4096
	// waitingBytesMax is what questions of UDP may take in the kernel until they are read, if the machine allows as much
	// (net.core.rmem_max): the bursts of a few clients at once.
	waitingBytesMax = 4 << 20
)

// serving is what listens at one address.
type serving struct {
	at    netip.Addr
	ready chan struct{} // closed once questions are answered
	stop  func()
}

// serve listens; at the zero Addr it does nothing.
func (s *server) serve(ctx context.Context, at netip.Addr) serving {
	if !at.IsValid() {
		return serving{at, nil, func() {}}
	}
	s.zone.Store(&records.Zone{Domain: s.Domain, Address: at, Serial: uint32(time.Now().Unix())})
	var children sync.WaitGroup
	ready := make(chan struct{})
	began := sync.OnceFunc(func() {
		close(ready)
		s.settled()
	})
	ctx, cancel := context.WithCancel(ctx)
	for _, l := range []struct {
		protocol string
		port     uint16
		listen   func(context.Context, string, func()) error
	}{
		{"udp", s.Ports.DNS, func(ctx context.Context, address string, open func()) error { return s.udp(ctx, address, open, began) }},
		{"tcp", s.Ports.DNS, s.tcp}, {"tcp", s.Ports.Metrics, s.http},
	} {
		address := netip.AddrPortFrom(at, l.port).String()
		socket := l.protocol + " " + address
		open := func() { s.Listening(socket, nil) }
		children.Go(func() { s.keep(ctx, socket, func() error { return l.listen(ctx, address, open) }) })
	}
	return serving{at, ready, func() {
		cancel()
		children.Wait()
	}}
}

// keep listens until ctx ends. A port may be taken now and free later.
func (s *server) keep(ctx context.Context, socket string, listen func() error) {
	for {
		err := listen()
		if ctx.Err() != nil {
			s.Listening(socket, nil) // the next one may have another address
			return
		}
		s.Listening(socket, err)
		s.Logger.Warn("the DNS of the cluster does not listen", "socket", socket, "err", err)
		if !wait.For(ctx, retryInterval) {
			return
		}
	}
}

func (s *server) udp(ctx context.Context, address string, open, began func()) error {
	conn, err := net.ListenPacket("udp", address)
	if err != nil {
		return err
	}
	_ = conn.(*net.UDPConn).SetReadBuffer(waitingBytesMax) // a smaller one serves too
	open()
	return s.answerOn(ctx, &dns.Server{PacketConn: conn, UDPSize: questionBytesMax}, conn, began)
}

func (s *server) tcp(ctx context.Context, address string, open func()) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	open()
	listener = strangers.NewDoor(connectionsMax).Listener(listener)
	return s.answerOn(ctx, &dns.Server{
		Listener: listener, ReadTimeout: readMax, WriteTimeout: readMax, MaxTCPQueries: questionsMax,
		IdleTimeout: func() time.Duration { return idleMax },
	}, listener, func() {})
}

// answerOn serves until ctx ends, and returns when no answer is under way any more.
func (s *server) answerOn(ctx context.Context, on *dns.Server, socket interface{ Close() error }, began func()) error {
	defer socket.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	on.Handler = dns.HandlerFunc(func(w dns.ResponseWriter, question *dns.Msg) { s.handle(ctx, w, question) })
	started := make(chan struct{})
	on.NotifyStartedFunc = func() {
		close(started)
		began()
	}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		<-ctx.Done()
		select {
		case <-started:
			_ = on.Shutdown() // waits for answers: they end with ctx
		default:
			socket.Close()
		}
	}()
	err := on.ActivateAndServe()
	cancel()
	<-stopped
	return err
}

// http shows the metrics.
func (s *server) http(ctx context.Context, address string, open func()) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	open()
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", s.metrics.handler())
	web := &http.Server{Handler: mux, ReadHeaderTimeout: readMax, ReadTimeout: readMax, IdleTimeout: idleMax, MaxHeaderBytes: questionBytesMax}
	defer context.AfterFunc(ctx, func() { web.Close() })()
	err = web.Serve(strangers.NewDoor(connectionsMax).Listener(listener))
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}
