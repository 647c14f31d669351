package testserver

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/setpoint-io/setpoint"
)

// cluster is one that the server holds. What changes it happens one after the other.
type cluster struct {
	session string
	// life ends with the cluster, and with it what it is doing; end ends it.
	life context.Context
	end  context.CancelFunc
	// nodes is how many are simulated.
	nodes   int
	mu      sync.Mutex
	current *setpoint.Cluster
	// ended is whether it was stopped: nothing begins in it any more.
	ended bool
	marks map[string]*setpoint.Image
	// kubeconfig is for the port of current, nil while it has none.
	kubeconfig []byte
}

func newCluster(ctx context.Context, started *setpoint.Cluster, session string, nodes int) *cluster {
	life, end := context.WithCancel(ctx)
	return &cluster{current: started, session: session, nodes: nodes, life: life, end: end, marks: map[string]*setpoint.Image{}}
}

// stop ends the cluster, and before that what it is doing.
func (c *cluster) stop() error {
	c.end()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	return c.current.Stop()
}

// do does one thing at a time, with a context that ends with the cluster too, and nothing once it has ended.
func (c *cluster) do(ctx context.Context, what func(ctx context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.life, cancel)()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return errGone
	}
	err := what(ctx)
	if err != nil && c.life.Err() != nil {
		return errGone
	}
	return err
}

// open returns a kubeconfig, and opens the port that it names.
func (c *cluster) open(ctx context.Context) (kubeconfig []byte, err error) {
	err = c.do(ctx, func(context.Context) (err error) {
		if c.kubeconfig == nil {
			c.kubeconfig, err = c.current.Listen()
		}
		kubeconfig = c.kubeconfig
		return err
	})
	return kubeconfig, err
}

func (c *cluster) image(ctx context.Context) (image *setpoint.Image, err error) {
	err = c.do(ctx, func(ctx context.Context) (err error) {
		image, err = c.current.Image(ctx)
		return err
	})
	return image, err
}

// mark remembers what the cluster holds.
func (c *cluster) mark(ctx context.Context, name string) error {
	return c.do(ctx, func(ctx context.Context) error {
		if len(c.marks) >= marksMax {
			return badRequest("the cluster has %d marks, the most that it may: reset to one of them, or fork", marksMax)
		}
		image, err := c.current.Image(ctx)
		if err == nil {
			c.marks[name] = image
		}
		return err
	})
}

// reset takes the cluster back to a mark: start starts what is in its place. It has no port until it is asked for a kubeconfig again.
func (c *cluster) reset(
	ctx context.Context, mark string, start func(ctx context.Context, from *setpoint.Image) (*setpoint.Cluster, error),
) error {
	return c.do(ctx, func(ctx context.Context) error {
		image, known := c.marks[mark]
		if !known {
			return notFound("the cluster has no mark %q", mark)
		}
		next, err := start(ctx, image)
		if err != nil {
			return err
		}
		former := c.current
		c.current, c.kubeconfig = next, nil
		if err := former.Stop(); err != nil {
			return err
		}
		return next.Ready(ctx)
	})
}

func (c *cluster) advance(ctx context.Context, d time.Duration) error {
	return c.do(ctx, func(ctx context.Context) error { return c.current.Advance(ctx, d) })
}

func (c *cluster) why(ctx context.Context, kind, namespace, name string) (lines []string, err error) {
	err = c.do(ctx, func(ctx context.Context) (err error) {
		lines, err = c.current.Why(ctx, kind, namespace, name)
		return err
	})
	return lines, err
}

func (c *cluster) switchNode(ctx context.Context, name string, on bool) error {
	return c.do(ctx, func(context.Context) error {
		if !c.simulates(name) {
			return badRequest("the cluster simulates no node %q: it has %d, from sim-1 on", name, c.nodes)
		}
		c.current.SwitchNode(name, on)
		return nil
	})
}

func (c *cluster) simulates(name string) bool {
	for i := range c.nodes {
		if name == fmt.Sprintf("sim-%d", i+1) {
			return true
		}
	}
	return false
}
