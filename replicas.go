package setpoint

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/server"
)

// replicas are the servers of a cluster, of which some may have crashed. It is safe for concurrent use.
type replicas struct {
	mu      sync.RWMutex
	servers []*replica
	// over is whether the cluster stops: none is started or ended any more but by Cluster.Stop.
	over bool
}

// errStops refuses what would begin while Cluster.Stop ends everything.
var errStops = errors.New("the cluster stops")

// replica is one server and what it is started with.
type replica struct {
	config server.Config
	*server.Server
	// ended tells how a crashed server ended; nil while it runs.
	ended chan error
	// servesPort is whether the port is its that Cluster.Listen opened last.
	servesPort bool
	// unwatch ends the wait for its failure, if a lesson started it.
	unwatch context.CancelFunc
}

// stop stops the server in the background; ended then tells how. The lock of the replicas is held.
func (r *replica) stop() {
	r.ended = make(chan error, 1)
	if r.unwatch != nil {
		r.unwatch()
	}
	go func() { r.ended <- r.Stop() }()
}

// howEnded waits until a server has ended that was stopped, and leaves the answer for whoever asks next.
func howEnded(ctx context.Context, ended chan error) error {
	select {
	case err := <-ended:
		ended <- err
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// start starts the i-th, or starts it again, unless the cluster stops.
func (r *replicas) start(ctx context.Context, i int, config server.Config) error {
	started, err := server.Start(ctx, config)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return errors.Join(errStops, started.Stop())
	}
	if i == len(r.servers) {
		r.servers = append(r.servers, nil)
	}
	r.servers[i] = &replica{config: config, Server: started}
	return nil
}

// all are those that were started last, crashed or not.
func (r *replicas) all() (all []*server.Server) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, one := range r.servers {
		all = append(all, one.Server)
	}
	return all
}

// up are those that run.
func (r *replicas) up() (up []*server.Server) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.running()
}

// end lets nothing more be started or ended, and returns those that run.
func (r *replicas) end() []*server.Server {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
	return r.running()
}

// running are those that run. The lock is held.
func (r *replicas) running() (up []*server.Server) {
	for _, one := range r.servers {
		if one.ended == nil {
			up = append(up, one.Server)
		}
	}
	return up
}

// first is the first one that runs, or the first one.
func (r *replicas) first() *server.Server {
	if up := r.up(); len(up) > 0 {
		return up[0]
	}
	return r.all()[0]
}

// firstForPort is the first one, for a port by which other processes reach the cluster from now on.
func (r *replicas) firstForPort() *server.Server {
	first := r.first()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range r.servers {
		one.servesPort = one.Server == first
	}
	return first
}

// config is a client of the first one that runs, whichever that is then.
func (r *replicas) config(u user.Info) *rest.Config {
	config := r.first().RESTConfig(u)
	config.Transport = toFirst{r, u}
	return config
}

type toFirst struct {
	replicas *replicas
	user     user.Info
}

// RoundTrip implements http.RoundTripper.
func (t toFirst) RoundTrip(r *http.Request) (*http.Response, error) {
	return t.replicas.first().RESTConfig(t.user).Transport.RoundTrip(r)
}

func (r *replicas) index(name string) (int, error) {
	for i, one := range r.servers {
		if one.config.Name == name {
			return i, nil
		}
	}
	return 0, fmt.Errorf("there is no server %q: they are named server-1 to server-%d", name, len(r.servers))
}

// crashed is what a server that crashed was started with, and what tells when it has ended.
func (r *replicas) crashed(name string) (i int, config server.Config, ended chan error, err error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if i, err = r.index(name); err != nil {
		return 0, server.Config{}, nil, err
	}
	one := r.servers[i]
	if one.ended == nil {
		return 0, server.Config{}, nil, errors.New("it runs: " + name)
	}
	return i, one.config, one.ended, nil
}

// awaitCrashed waits until those that crashed or were stopped have ended. How those in memory ended is no matter.
func (r *replicas) awaitCrashed() error {
	r.mu.RLock()
	defer r.mu.RUnlock()
	var errs []error
	for _, one := range r.servers {
		if one.ended == nil {
			continue
		}
		if err := howEnded(context.Background(), one.ended); one.config.Memory == nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Leader is the name of the replica that leads, "" if those that run know of none.
func (c *Cluster) Leader() string {
	up := c.replicas.up()
	for _, one := range up {
		status := one.Status()
		for _, other := range up {
			if status.Leader != "" && other.Status().Name == status.Leader {
				return status.Leader
			}
		}
	}
	return ""
}

// CrashServer ends a replica in memory as kill -9 does: what it has not on its disk is lost, and nobody hears of it
// again. StartServer brings it back. The servers of a backup's cluster are crashed with Config.Lessons only.
func (c *Cluster) CrashServer(name string) error {
	if !c.config.InMemory {
		return errNotInMemory
	}
	if c.readsServer() {
		return errReadsServer
	}
	c.replicas.mu.Lock()
	defer c.replicas.mu.Unlock()
	i, err := c.replicas.index(name)
	if err != nil {
		return err
	}
	one := c.replicas.servers[i]
	switch {
	case one.ended != nil:
		return nil
	case c.replicas.over:
		return errStops
	}
	c.network.cut(c.endpoint(i))
	c.memories[i].Crash()
	one.stop() // in the background: its loops may be waiting for whoever called this
	return nil
}

// StartServer starts a replica again that CrashServer ended. It runs until Stop or the end of ctx.
func (c *Cluster) StartServer(ctx context.Context, name string) error {
	if !c.config.InMemory {
		return errNotInMemory
	}
	i, config, ended, err := c.replicas.crashed(name)
	if err != nil {
		return err
	}
	if err := howEnded(ctx, ended); err != nil && ctx.Err() != nil {
		return err // otherwise it is no matter how: what it wrote after the crash is lost
	}
	config.Listener = c.network.listen(c.endpoint(i))
	return c.replicas.start(ctx, i, config)
}
