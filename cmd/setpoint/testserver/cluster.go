package testserver

import (
	"context"
	"sync"
	"time"

	"github.com/setpoint-io/setpoint"
)

// cluster is one that the server holds. What changes it happens one after the other.
type cluster struct {
	session string
	mu      sync.Mutex
	current *setpoint.Cluster
	marks   map[string]*setpoint.Image
	// kubeconfig is for the port of current, nil while it has none.
	kubeconfig []byte
}

func (c *cluster) stop() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.current.Stop()
}

// open returns a kubeconfig, and opens the port that it names.
func (c *cluster) open() ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kubeconfig != nil {
		return c.kubeconfig, nil
	}
	kubeconfig, err := c.current.Listen()
	if err == nil {
		c.kubeconfig = kubeconfig
	}
	return kubeconfig, err
}

func (c *cluster) image(ctx context.Context) (*setpoint.Image, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.current.Image(ctx)
}

// mark remembers what the cluster holds.
func (c *cluster) mark(ctx context.Context, name string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.marks) >= marksMax {
		return badRequest("the cluster has %d marks, the most that it may: reset to one of them, or fork", marksMax)
	}
	image, err := c.current.Image(ctx)
	if err == nil {
		c.marks[name] = image
	}
	return err
}

// reset takes the cluster back to a mark. It has no port until it is asked for a kubeconfig again.
func (c *cluster) reset(ctx, life context.Context, mark string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	image, known := c.marks[mark]
	if !known {
		return notFound("the cluster has no mark %q", mark)
	}
	next, err := image.Start(life)
	if err != nil {
		return err
	}
	former := c.current
	c.current, c.kubeconfig = next, nil
	if err := former.Stop(); err != nil {
		return err
	}
	return next.Ready(ctx)
}

func (c *cluster) advance(ctx context.Context, d time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.current.Advance(ctx, d)
}

func (c *cluster) switchNode(name string, on bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.current.SwitchNode(name, on)
}
