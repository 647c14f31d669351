package setpoint

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/apiserver/explain"
	"github.com/setpoint-io/setpoint/apiserver/storage"
	"github.com/setpoint-io/setpoint/internal/clusterclock"
	"github.com/setpoint-io/setpoint/internal/process"
	"github.com/setpoint-io/setpoint/internal/trust"
	"github.com/setpoint-io/setpoint/server"
	"github.com/setpoint-io/setpoint/server/settings"
)

var (
	errReadsServer = errors.New("the nodes of a backup's cluster read from its server: set Config.Lessons to crash it")
	errNotInMemory = errors.New("only a cluster in memory can do this: set Config.InMemory")
	errSeveral     = errors.New("a cluster of several replicas cannot be forked: set Config.Replicas to 1")
)

// An Image is what a cluster in memory held at a moment. It runs nothing and never changes.
type Image struct {
	config   Config
	settings settings.Cluster
	memory   *server.Memory
	trust    *trust.Cluster
	// ahead is by how much the cluster's time was ahead of the process's.
	ahead time.Duration
}

// Image returns what the cluster holds now: every write that was answered before the call. Nothing is copied.
func (c *Cluster) Image(ctx context.Context) (*Image, error) {
	if !c.config.InMemory {
		return nil, errNotInMemory
	}
	if c.config.Replicas > 1 {
		return nil, errSeveral
	}
	keys := c.trust.Copied() // before: they may be behind what is stored, whose rotations the fork follows
	memory, err := c.replicas.first().Fork(ctx)
	return &Image{c.config, c.settings, memory, keys, c.clock.Ahead()}, err
}

// Intercepted is the image with another Config.Intercept: what sees the loops of one cluster need not see its forks'.
func (i *Image) Intercepted(intercept func(user string, r *http.Request, next http.RoundTripper) (*http.Response, error)) *Image {
	other := *i
	other.config.Intercept = intercept
	return &other
}

// Start starts a cluster that goes on from the image. It costs what starting a cluster costs, whatever the number
// of objects; from then on it has revisions, watches, loops and nodes of its own. It runs until Stop or the end of ctx.
func (i *Image) Start(ctx context.Context) (*Cluster, error) {
	c := &Cluster{
		config: i.config, settings: i.settings, memories: []*server.Memory{i.memory.Copy()}, trust: i.trust.Copied(),
		clock: clusterclock.New(i.ahead),
	}
	return c.start(ctx)
}

// Fork starts another cluster from what this one holds now.
func (c *Cluster) Fork(ctx context.Context) (*Cluster, error) {
	image, err := c.Image(ctx)
	if err != nil {
		return nil, err
	}
	return image.Start(ctx)
}

// ClientConfig is a client of the first replica that runs, without a socket, as the user. The groups system:authenticated or
// system:unauthenticated come by themselves.
func (c *Cluster) ClientConfig(u *user.DefaultInfo) *rest.Config {
	group := user.AllAuthenticated
	if u.Name == user.Anonymous {
		group = user.AllUnauthenticated
	}
	inside := c.replicas.config(&user.DefaultInfo{
		Name: u.Name, UID: u.UID, Groups: append(u.Groups[:len(u.Groups):len(u.Groups)], group), Extra: u.Extra,
	})
	return &rest.Config{Host: inside.Host, Transport: inside.Transport, QPS: -1}
}

// Listen opens a port of loopback for clients of other processes, and returns a kubeconfig with the administrator's
// credentials for it. Stop closes it. The credentials end by the cluster's time, so with a Jump over their life: then Listen again.
func (c *Cluster) Listen() (kubeconfig []byte, err error) {
	if !c.config.InMemory {
		return nil, errNotInMemory
	}
	listener, err := process.Listen(loopback+":0", process.PortFlag)
	if err != nil {
		return nil, err
	}
	c.replicas.firstForPort().Accept(listener)
	return trust.Kubeconfig(c.trust.Copied().Admin, []trust.Server{{Name: "server-1", Endpoint: listener.Addr().String()}})
}

// ListenTLS opens a listener with certificates and an authority for clients that are not the cluster's. Stop closes it.
func (c *Cluster) ListenTLS(listener net.Listener, config *tls.Config) {
	c.replicas.first().AcceptTLS(listener, config)
}

// SwitchNode switches a simulated node off, as a power cut does, or on again.
func (c *Cluster) SwitchNode(name string, on bool) {
	c.outage.Set(name, !on)
	if c.played != nil {
		c.played.turn(c.running, name, on)
	}
}

// Change is one stored change: what, by whom, and because of which object.
type Change = storage.Recorded

// Changes are what was stored after a revision, oldest first. It fails if some are forgotten.
func (c *Cluster) Changes(after uint64) ([]Change, error) { return c.replicas.first().Changes(after) }

// Revision is that of the newest change.
func (c *Cluster) Revision() uint64 { return c.replicas.first().Revision() }

// Why says what holds an object, as `setpoint why` does: the conclusion, then causes, one a line. Kind is a kind,
// resource or short name.
func (c *Cluster) Why(ctx context.Context, kind, namespace, name string) ([]string, error) {
	answer, err := c.replicas.first().Why(ctx, kind, namespace, name)
	if err != nil {
		return nil, err
	}
	lines := []string{answer.Conclusion}
	return append(lines, causeLines(answer.Causes, "  ")...), nil
}

func causeLines(causes []explain.Cause, indent string) (lines []string) {
	for _, cause := range causes {
		lines = append(lines, fmt.Sprintf("%s%s: %s", indent, cause.Object, cause.What))
		lines = append(lines, causeLines(cause.Causes, indent+"  ")...)
	}
	return lines
}
