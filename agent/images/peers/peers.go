package peers

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"time"
)

const (
	// askedMax is how many nodes are asked for one layer, and askTime how long all of them have to say that they have it.
	askedMax = 16
	askTime  = 2 * time.Second
	// stallTime is how long a node may send nothing.
	stallTime = 15 * time.Second
	idleTime  = 30 * time.Second
)

var errNobody = errors.New("no other node has the layer")

// Config of New; all fields are required.
type Config struct {
	// Nodes are the addresses of other nodes' agents, host:port. It may be called by any goroutine.
	Nodes func() []string
	// Path of a layer at an agent's port, before the digest.
	Path string
	// TLS shows the certificate of this node.
	TLS *tls.Config
}

// Client asks. It is safe for concurrent use.
type Client struct {
	Config
	http *http.Client
}

// New returns a Client that has asked nobody yet.
func New(c Config) *Client {
	return &Client{Config: c, http: &http.Client{Transport: &http.Transport{
		TLSClientConfig: c.TLS, DialContext: (&net.Dialer{Timeout: askTime}).DialContext, TLSHandshakeTimeout: askTime,
		MaxIdleConnsPerHost: 2, IdleConnTimeout: idleTime, DisableCompression: true,
	}}}
}

// Layer returns what a node sends as the tar of this digest.
func (c *Client) Layer(ctx context.Context, digest string) (io.ReadCloser, error) {
	node, err := c.find(ctx, digest)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	stall := time.AfterFunc(stallTime, func() { cancel(fmt.Errorf("node at %s: nothing came for %s", node, stallTime)) })
	answer, err := c.ask(ctx, http.MethodGet, node, digest)
	if err != nil {
		stall.Stop()
		err = cmp.Or(context.Cause(ctx), err)
		cancel(nil)
		return nil, err
	}
	return &body{answer.Body, ctx, cancel, stall}, nil
}

// find is a node that has the layer, whichever says so first.
func (c *Client) find(ctx context.Context, digest string) (node string, err error) {
	nodes := c.Nodes()
	rand.Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
	nodes = nodes[:min(len(nodes), askedMax)]
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	answers := make(chan string, len(nodes))
	for _, node := range nodes {
		go func() {
			if answer, err := c.ask(ctx, http.MethodHead, node, digest); err == nil {
				_ = answer.Body.Close()
				answers <- node
				return
			}
			answers <- ""
		}()
	}
	for range nodes {
		if node := <-answers; node != "" {
			return node, nil
		}
	}
	return "", errNobody
}

// ask fails unless the answer is 200.
func (c *Client) ask(ctx context.Context, method, node, digest string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, "https://"+node+c.Path+digest, nil)
	if err != nil {
		return nil, err
	}
	answer, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		_ = answer.Body.Close()
		return nil, fmt.Errorf("node at %s: %s", node, answer.Status)
	}
	return answer, nil
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
