package gossip

import (
	"errors"
	"net"
	"strconv"
	"syscall"

	"github.com/hashicorp/memberlist"
)

// listen makes the member at its port, or at a free one if that is taken, as by another member on this machine: others
// learn from the pool itself where a member is.
func (p *Pool) listen(c *memberlist.Config) (err error) {
	if c.BindPort != 0 && c.Transport == nil && taken(c.BindAddr, c.BindPort) {
		c.BindPort, c.AdvertisePort = 0, 0
	}
	if c.Transport == nil {
		if c.Transport, err = newGuarded(c); err != nil {
			return err
		}
	}
	if p.list, err = memberlist.Create(c); err != nil {
		_ = c.Transport.Shutdown() // it is of no use
		return err
	}
	if _, wanted, _ := splitAddress(p.config.BindAddr); wanted != 0 && c.BindPort != wanted {
		p.config.Logger.Info("the gossip port is taken: another one is used", "wanted", wanted, "port", c.BindPort)
	}
	return nil
}

// taken reports whether somebody has the port, tcp or udp. The library's own error does not tell.
func taken(host string, port int) bool {
	address := net.JoinHostPort(host, strconv.Itoa(port))
	stream, err := net.Listen("tcp", address)
	if err != nil {
		return errors.Is(err, syscall.EADDRINUSE)
	}
	defer stream.Close()
	packets, err := net.ListenPacket("udp", address)
	if err != nil {
		return errors.Is(err, syscall.EADDRINUSE)
	}
	defer packets.Close()
	return false
}
