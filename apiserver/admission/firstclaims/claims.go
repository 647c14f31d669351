package firstclaims

import (
	"fmt"
	"net/netip"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/setpoint-io/setpoint/internal/reserved"
)

// thing is what one object can have alone: a port of an address, or something of Ingresses.
type thing struct {
	// port is one of the address; if that is the zero one, of all nodes.
	port    reserved.Port
	address netip.Addr
	// ofIngresses is a host, or the default backend, as people read it.
	ofIngresses string
}

// String is the beginning of a sentence.
func (t thing) String() string {
	switch {
	case t.ofIngresses != "":
		return t.ofIngresses
	case t.ofNodes():
		return fmt.Sprintf("port %s of the nodes", t.port)
	}
	return fmt.Sprintf("port %s of %s", t.port, t.address)
}

// ofNodes reports whether it is a port of all nodes.
func (t thing) ofNodes() bool { return t.ofIngresses == "" && !t.address.IsValid() }

// claim is a thing that an object claims, and where.
type claim struct {
	thing
	path  *field.Path
	value any
}

// newOf are the claims that were not there before.
func newOf(now, old []claim) []claim {
	had := map[thing]bool{}
	for _, c := range old {
		had[c.thing] = true
	}
	return slices.DeleteFunc(slices.Clone(now), func(c claim) bool { return had[c.thing] })
}
