package pki

import (
	"fmt"
	"net"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Server is one server of the cluster as its certificate and the kubeconfigs name it.
type Server struct {
	Name string
	// Endpoint is host:port as clients and peers dial it.
	Endpoint string
	// Addresses are further DNS names and IP addresses by which it is reached.
	Addresses []string
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
	for _, list := range [][]string{{s.Name, host}, s.Addresses, apiNames} {
		for _, name := range list {
			if !seen[name] {
				seen[name] = true
				names = append(names, name)
			}
		}
	}
	return names
}
