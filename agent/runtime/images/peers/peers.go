package peers

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

const (
	// askedMax is how many nodes are asked for one layer, and askTime how long each has to say what it knows of it.
	askedMax = 16
	askTime  = 2 * time.Second
	// silenceTime is how long a node is not asked that said nothing.
	silenceTime = 30 * time.Second
	// stallTime is how long a node may send nothing.
	stallTime = 15 * time.Second
	idleTime  = 30 * time.Second
	// connectionsMax is how many connections to a node are kept.
	connectionsMax = 4
	// headerBytesMax is how large the header of an answer may be.
	headerBytesMax = 64 << 10
	// Between two questions is waitShare of the time waited, and no less and no more than these.
	waitShare = 8
	pauseMin  = 20 * time.Millisecond
	pauseMax  = time.Second
)

// errBusy says that a node has the layer, and sends as many as it does at once.
var errBusy = errors.New("busy")

// Config of New; all fields are required.
type Config struct {
	// Nodes are the addresses of agents, host:port: this node's, empty while it is not known, and those of other nodes. It may be called
	// by any goroutine.
	Nodes func() (self string, others []string)
	// Path of a layer at an agent's port, before the digest.
	Path string
	// TLS shows the certificate of this node.
	TLS *tls.Config
}

// Client asks. It is safe for concurrent use. mu guards silent.
type Client struct {
	Config
	http   *http.Client
	mu     sync.Mutex
	silent map[string]time.Time // nodes that are asked again after this
}

// New returns a Client that has asked nobody yet.
func New(c Config) *Client {
	return &Client{Config: c, silent: map[string]time.Time{}, http: &http.Client{Transport: &http.Transport{
		TLSClientConfig: c.TLS, DialContext: (&net.Dialer{Timeout: askTime}).DialContext, TLSHandshakeTimeout: askTime,
		MaxIdleConnsPerHost: connectionsMax, IdleConnTimeout: idleTime, DisableCompression: true,
		MaxResponseHeaderBytes: headerBytesMax,
	}, CheckRedirect: here}}
}

// here goes nowhere else with this node's certificate, whatever another says.
func here(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// Layer gives what nodes send as the tar of this digest, one after the other, until the caller has what it should be. When it ends by
// itself, the layer is the caller's to fetch. Meanwhile the caller says Wanted to others; claim says whether it is Fetching instead.
func (c *Client) Layer(ctx context.Context, digest string, claim func(fetching bool)) iter.Seq[io.ReadCloser] {
	return func(yield func(io.ReadCloser) bool) {
		s := &search{Client: c, digest: digest, wrong: map[string]bool{}, began: time.Now()}
		for claimed := false; ctx.Err() == nil; {
			node, wait := decide(s.ask(ctx), claimed)
			if node == "" && !wait && claimed {
				return
			}
			claimed = node == "" && !wait
			claim(claimed)
			switch {
			case wait:
				s.pause(ctx)
			case node != "" && !s.give(ctx, node, yield):
				return
			}
		}
	}
}

// search is for one layer.
type search struct {
	*Client
	digest string
	wrong  map[string]bool // nodes that did not give the layer
	began  time.Time
}

// pause is short at first, and for long waits not longer than what they may take longer.
func (s *search) pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(min(max(time.Since(s.began)/waitShare, pauseMin), pauseMax)):
	}
}

// give hands the caller what a node sends, and says whether it wants that of another.
func (s *search) give(ctx context.Context, node string, yield func(io.ReadCloser) bool) (more bool) {
	content, err := s.take(ctx, node)
	if errors.Is(err, errBusy) {
		s.pause(ctx)
		return true
	}
	s.wrong[node] = true
	return err != nil || yield(content)
}

// ask asks the nodes that come first, until one has the layer or all have answered.
func (s *search) ask(ctx context.Context) (all []answer) {
	self, others := s.Nodes()
	nodes := slices.DeleteFunc(inOrder(s.digest, self, others), func(a answer) bool { return s.wrong[a.node] || s.isSilent(a.node) })
	nodes = nodes[:min(len(nodes), askedMax)]
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	answers := make(chan answer, len(nodes))
	for _, a := range nodes {
		go func() {
			a.state = s.state(ctx, a.node)
			answers <- a
		}()
	}
	for range nodes {
		a := <-answers
		if a.state == Here {
			return []answer{a}
		}
		all = append(all, a)
	}
	return all
}

// state is what a node says; None if it says nothing.
func (s *search) state(ctx context.Context, node string) State {
	answer, err := s.request(ctx, http.MethodHead, node)
	if err != nil {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			s.silence(node)
		}
		return None
	}
	_ = answer.Body.Close()
	state := State(answer.Header.Get(StateHeader))
	if state == Here && answer.StatusCode != http.StatusOK {
		return Fetching // it will give it later
	}
	return state
}

func (c *Client) isSilent(node string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Before(c.silent[node])
}

func (c *Client) silence(node string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(c.silent, func(_ string, until time.Time) bool { return now.After(until) })
	c.silent[node] = now.Add(silenceTime)
}

func (s *search) request(ctx context.Context, method, node string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, "https://"+node+s.Path+s.digest, nil)
	if err != nil {
		return nil, err
	}
	return s.http.Do(request)
}

// take begins to have the layer from a node.
func (s *search) take(ctx context.Context, node string) (io.ReadCloser, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	stall := time.AfterFunc(stallTime, func() { cancel(fmt.Errorf("node at %s: nothing came for %s", node, stallTime)) })
	answer, err := s.request(ctx, http.MethodGet, node)
	if err == nil && answer.StatusCode != http.StatusOK {
		_ = answer.Body.Close()
		err = fmt.Errorf("node at %s: %s", node, answer.Status)
		if answer.StatusCode == http.StatusServiceUnavailable {
			err = errBusy
		}
	}
	if err != nil {
		stall.Stop()
		cancel(nil)
		return nil, err
	}
	return &body{answer.Body, ctx, cancel, stall}, nil
}

// body ends when nothing comes any more.
type body struct {
	io.ReadCloser
	ctx    context.Context
	cancel context.CancelCauseFunc
	stall  *time.Timer
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	b.stall.Reset(stallTime)
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = cmp.Or(context.Cause(b.ctx), err)
	}
	return n, err
}

// Close implements io.Closer.
func (b *body) Close() error {
	b.stall.Stop()
	b.cancel(nil)
	return b.ReadCloser.Close()
}
