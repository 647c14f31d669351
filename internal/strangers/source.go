package strangers

import (
	"net"

	"github.com/setpoint-io/setpoint/internal/sampled"
)

// sourceOf is where a connection comes from. Those without an IP address are of one source.
func sourceOf(c net.Conn) string {
	if at := c.RemoteAddr(); at != nil {
		return sampled.Source(at.String())
	}
	return sampled.Source("")
}
