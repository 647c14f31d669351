package badinput

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
)

// bystander writes and reads while others misbehave. Its requests must all succeed.
type bystander struct {
	requests atomic.Int64
	stop     chan struct{}
	failure  chan error
}

func (c *cluster) startBystander(t *testing.T) *bystander {
	t.Helper()
	b := &bystander{stop: make(chan struct{}), failure: make(chan error, 1)}
	client := c.client(t, c.trust.Admin)
	go func() { b.failure <- b.run(c, client) }()
	return b
}

func (b *bystander) run(c *cluster, client *http.Client) error {
	const path = "/api/v1/namespaces/default/configmaps"
	for n := 0; ; n++ {
		select {
		case <-b.stop:
			return nil
		default:
		}
		name := fmt.Sprintf("bystander-%d", n)
		for _, r := range []request{
			{method: http.MethodPost, path: path, contentType: jsonType, body: `{"metadata":{"name":"` + name + `"}}`},
			{method: http.MethodGet, path: path + "/" + name},
			{method: http.MethodDelete, path: path + "/" + name},
		} {
			code, body, err := c.send(client, n%len(c.hosts), r)
			if err != nil || code >= http.StatusMultipleChoices {
				return fmt.Errorf("%s %s: %d %s (%w)", r.method, r.path, code, body, err)
			}
			b.requests.Add(1)
		}
	}
}

// check ends the bystander and tells whether it was disturbed.
func (b *bystander) check(t *testing.T) {
	t.Helper()
	close(b.stop)
	if err := <-b.failure; err != nil {
		t.Error("the bystander was disturbed:", err)
	}
	if b.requests.Load() == 0 {
		t.Error("the bystander did nothing")
	}
}
