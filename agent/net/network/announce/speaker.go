package announce

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"
)

// frameBytesMax is more than is read of a frame.
const frameBytesMax = 256

// language is how machines of a link ask who has an address of a family, and answer.
type language interface {
	// listens is what is read of the link.
	listens() listening
	// parse reads a frame; anybody may have sent it.
	parse(frame []byte) (heard, bool)
	// group is the one of multicast in which others ask for the address; invalid: all machines hear the question.
	group(ip netip.Addr) netip.Addr
	// announcement tells all that we have the address; reply tells those who asked.
	announcement(own self, ip netip.Addr) []byte
	reply(own self, question heard) []byte
}

// self is this machine on a link.
type self struct {
	index    int
	hardware net.HardwareAddr
	ip       netip.Addr
}

// heard is what a machine said: that it has an address, or a question for another, or both.
type heard struct {
	sender         net.HardwareAddr
	has, wants, by netip.Addr // by is who asks
}

// speaker announces the addresses of one family. mu guards held; a yielded address is one that another machine has announced since
// the last set.
type speaker struct {
	language language
	nodeIP   netip.Addr
	logger   *slog.Logger
	mu       sync.Mutex
	held     map[netip.Addr]*announced
	wake     chan struct{} // holds one: more would say the same
}

type announced struct{ yielded bool }

func newSpeaker(l language, nodeIP netip.Addr, logger *slog.Logger) *speaker {
	return &speaker{language: l, nodeIP: nodeIP, logger: logger, held: map[netip.Addr]*announced{}, wake: make(chan struct{}, 1)}
}

func (s *speaker) set(addresses []netip.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := map[netip.Addr]*announced{}
	changed := len(addresses) < len(s.held)
	for _, ip := range addresses {
		was := s.held[ip]
		changed = changed || was == nil || was.yielded
		next[ip] = &announced{}
	}
	s.held = next
	if changed {
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
}

func (s *speaker) run(ctx context.Context) {
	select {
	case <-ctx.Done():
		return
	case <-s.wake:
	}
	for ctx.Err() == nil {
		if err := s.serve(ctx); err != nil {
			s.logger.Warn("load balancers' addresses are not announced", "node", s.nodeIP.String(), "err", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(announceInterval):
		}
	}
}

// serve answers on one socket.
func (s *speaker) serve(ctx context.Context) error {
	own, socket, err := open(s.nodeIP, s.language.listens())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var children sync.WaitGroup
	defer children.Wait()
	defer socket.Close()
	defer cancel()
	children.Go(func() { s.repeat(ctx, own, socket) })
	defer context.AfterFunc(ctx, func() { _ = socket.Close() })()
	frame := make([]byte, frameBytesMax)
	for {
		n, err := socket.Read(frame)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if answer := s.answer(frame[:n], own); answer != nil {
			_, _ = socket.Write(answer) // who asked asks again
		}
	}
}

// repeat announces what is held, at once when there is more, and is in the groups in which questions for it come.
func (s *speaker) repeat(ctx context.Context, own self, socket io.Writer) {
	tick := time.NewTicker(announceInterval)
	defer tick.Stop()
	groups := groups{link: own.index, joined: map[netip.Addr]int{}}
	defer groups.leave(nil)
	for {
		announcing := s.announcing()
		if err := groups.set(s.language, announcing); err != nil {
			s.logger.Warn("questions for load balancers' addresses may not be heard", "err", err)
		}
		for _, ip := range announcing {
			_, _ = socket.Write(s.language.announcement(own, ip))
		}
		select {
		case <-ctx.Done():
			return
		case <-s.wake:
		case <-tick.C:
		}
	}
}

func (s *speaker) announcing() []netip.Addr {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []netip.Addr
	for ip, state := range s.held {
		if !state.yielded {
			all = append(all, ip)
		}
	}
	return all
}

// answer is the reply to a frame, if it needs one. Another machine that announces one of the addresses has it from then on: it
// heard of its election, and we did not.
func (s *speaker) answer(frame []byte, own self) []byte {
	said, ok := s.language.parse(frame)
	if !ok || bytes.Equal(said.sender, own.hardware) {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if state := s.held[said.has]; state != nil && !state.yielded {
		state.yielded = true
		s.logger.Warn("another machine announces a load balancer's address", "address", said.has.String(), "machine", said.sender.String())
	}
	if state := s.held[said.wants]; state == nil || state.yielded {
		return nil
	}
	return s.language.reply(own, said)
}
