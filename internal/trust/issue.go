package trust

import (
	"net/netip"
	"slices"
	"strings"
	"time"
)

// apiNames are the names by which every server is reached besides its own, and the address of the API's Service:
// from the machine itself and from pods. No node may hold a certificate for one.
var apiNames = []string{
	"localhost", "127.0.0.1", "::1",
	"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
}

// IssueServer makes the identity of a server: it serves the API and calls its peers and the agents.
func (ca *CA) IssueServer(server Server, now time.Time) (*Identity, error) {
	if err := server.validate(); err != nil {
		return nil, err
	}
	return ca.issue(leaf{
		commonName: serverPrefix + server.Name, groups: []string{GroupServers, formerGroupServers},
		names: server.Names(), client: true, server: true,
	}, now)
}

// IssueAdmin makes the client identity that may do everything.
func (ca *CA) IssueAdmin(now time.Time) (*Identity, error) {
	return ca.issue(leaf{commonName: adminName, groups: []string{GroupMasters}, client: true}, now)
}

// IssueNode makes the client identity of a node inside this process (tests). Agents
// keep their key to themselves and have a request signed: SignNode.
func (ca *CA) IssueNode(node string, now time.Time) (*Identity, error) {
	if err := ValidateNodeName(node); err != nil {
		return nil, err
	}
	return ca.issue(nodeClient(node), now)
}

// IssueNodeServing makes the identity with which an agent inside this process (dev)
// serves; ca is a NodeServing, clients the authority of those who may call it.
func (ca *CA) IssueNodeServing(node string, clients *CA, now time.Time) (*Identity, error) {
	if err := ValidateNodeName(node); err != nil {
		return nil, err
	}
	id, err := ca.issue(nodeServer(node, "", nil), now)
	if err != nil {
		return nil, err
	}
	id.CAPEM = clients.CertPEM()
	return id, nil
}

func nodeClient(node string) leaf {
	return leaf{commonName: nodePrefix + node, groups: []string{GroupNodes}, client: true}
}

// nodeServer bears the node's name, and the address from which a server saw it call, but none of the Services.
func nodeServer(node, seen string, services []netip.Prefix) leaf {
	l := leaf{commonName: nodePrefix + node, groups: []string{GroupNodes}, names: []string{node}, server: true}
	ip, err := netip.ParseAddr(seen)
	ip = ip.Unmap()
	isOfService := slices.ContainsFunc(services, func(p netip.Prefix) bool { return p.Contains(ip) })
	if err == nil && ip.Zone() == "" && ip.IsGlobalUnicast() && !isOfService {
		l.names = append(l.names, ip.String())
	}
	return l
}

// NodeUser is the user name of a node's certificate.
func NodeUser(node string) string { return nodePrefix + node }

// ServerUser is the user name of a server's certificate.
func ServerUser(server string) string { return serverPrefix + server }

// ServerOfUser returns the server that a user name stands for.
func ServerOfUser(user string) (server string, ok bool) {
	server, ok = strings.CutPrefix(user, serverPrefix)
	return server, ok && server != ""
}

// NodeOfUser returns the node that a user name stands for.
func NodeOfUser(user string) (node string, ok bool) {
	node, ok = strings.CutPrefix(user, nodePrefix)
	return node, ok && node != ""
}
