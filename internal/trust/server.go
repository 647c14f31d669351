package trust

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/setpoint-io/setpoint/internal/servicerange"
)

// Server is one server of the cluster as its certificate and the kubeconfigs name it.
type Server struct {
	Name string
	// Endpoint is host:port as clients and peers dial it.
	Endpoint string
	// Addresses are further DNS names and IP addresses by which it is reached.
	Addresses []string
	// Services is the range whose first address is the API's Service; zero: the default one.
	Services netip.Prefix
}

// ParseServers reads "name=host:port,..." (the form of --initial-servers).
func ParseServers(text string) ([]Server, error) {
	var servers []Server
	for entry := range strings.SplitSeq(text, ",") {
		name, endpoint, found := strings.Cut(strings.TrimSpace(entry), "=")
		if !found {
			return nil, fmt.Errorf("%w: %q: want name=host:port", ErrBadServer, entry)
		}
		server := Server{Name: name, Endpoint: endpoint}
		if err := server.validate(); err != nil {
			return nil, err
		}
		for _, other := range servers {
			if other.Name == name {
				return nil, fmt.Errorf("%w: %q is named twice", ErrBadServer, name)
			}
		}
		servers = append(servers, server)
	}
	return servers, nil
}

// DefaultAddress is the address of a server without --initial-servers and --advertise-address.
const DefaultAddress = "127.0.0.1:6443"

var errNotInitial = errors.New("it is not one of --initial-servers: to join them, give --advertise-address too")

// ServersOf reads the servers of a cluster as one of them is told: a list as of ParseServers,
// or none, and then it is alone at its address. A server that the list lacks must have one.
func ServersOf(name, address, list string) ([]Server, error) {
	if list == "" {
		return ParseServers(name + "=" + cmp.Or(address, DefaultAddress))
	}
	servers, err := ParseServers(list)
	if err == nil && address == "" && !slices.ContainsFunc(servers, func(s Server) bool { return s.Name == name }) {
		err = fmt.Errorf("--name %q: %w", name, errNotInitial)
	}
	return servers, err
}

func (s Server) validate() error {
	if problems := validation.IsDNS1123Subdomain(s.Name); len(problems) > 0 {
		return fmt.Errorf("%w: name %q: %s", ErrBadServer, s.Name, strings.Join(problems, "; "))
	}
	if _, _, err := net.SplitHostPort(s.Endpoint); err != nil {
		return fmt.Errorf("%w: %q: endpoint: %w", ErrBadServer, s.Name, err)
	}
	return nil
}

// Names are all names and addresses of the server's certificate, each once.
func (s Server) Names() []string {
	host, _, _ := net.SplitHostPort(s.Endpoint)
	seen := map[string]bool{"": true}
	var names []string
	for _, list := range [][]string{{s.Name, host}, s.Addresses, apiNames, {servicerange.API(s.Services).String()}} {
		for _, name := range list {
			if !seen[name] {
				seen[name] = true
				names = append(names, name)
			}
		}
	}
	return names
}
