package setpoint

import (
	"errors"
	"net"
	"net/url"
	"path/filepath"
	"strconv"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/setpoint-io/setpoint/internal/process"
	"github.com/setpoint-io/setpoint/internal/trust"
)

// listen opens the port of each replica: that of the Config and those behind it, or else the one
// that the replica had before.
func (c *Cluster) listen() ([]net.Listener, []trust.Server, error) {
	if c.config.InMemory {
		listeners, servers := c.listenInMemory()
		return listeners, servers, nil
	}
	var listeners []net.Listener
	var servers []trust.Server
	for i := range c.config.Replicas {
		name := "server-" + strconv.Itoa(i+1)
		listener, err := c.listenAs(name, i)
		if err != nil {
			return nil, nil, errors.Join(err, closeAll(listeners))
		}
		listeners = append(listeners, listener)
		servers = append(servers, trust.Server{Name: name, Endpoint: listener.Addr().String()})
	}
	return listeners, servers, nil
}

func (c *Cluster) listenAs(name string, i int) (net.Listener, error) {
	if c.config.Port != 0 {
		return process.Listen(net.JoinHostPort(loopback, strconv.Itoa(c.config.Port+i)), process.PortFlag)
	}
	if former := c.formerEndpoint(name); former != "" {
		listener, err := process.Listen(former, process.PortFlag)
		if err == nil {
			return listener, nil
		}
		c.config.Logger.Warn("a server takes another port than at the last start: copies of its kubeconfig no longer lead to it",
			"server", name, "former", former, "err", err)
	}
	return process.Listen(net.JoinHostPort(loopback, "0"), process.PortFlag)
}

// formerEndpoint is where a replica listened at the last start, as its kubeconfig says, so that
// copies of that stay good; "" if it has none.
func (c *Cluster) formerEndpoint(name string) string {
	raw, err := clientcmd.LoadFromFile(filepath.Join(c.config.DataDir, name+".kubeconfig"))
	if err != nil || raw.Clusters[name] == nil {
		return ""
	}
	server, err := url.Parse(raw.Clusters[name].Server)
	if err != nil || server.Hostname() != loopback || server.Port() == "" {
		return ""
	}
	return server.Host
}

func closeAll(listeners []net.Listener) (err error) {
	for _, l := range listeners {
		if l != nil {
			err = errors.Join(err, l.Close())
		}
	}
	return err
}
