package services

import (
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/agent/net/ipfamily"
	"github.com/setpoint-io/setpoint/agent/net/network"
	"github.com/setpoint-io/setpoint/internal/reserved"
)

// withoutReserved leaves out of a plan what is the cluster's own: addresses that would take a port of a machine, a health port that is one,
// and endpoints to which nobody but machines sends. An address of which nothing is left is not announced. Servers refuse such Services, but
// may have stored one before the machine came.
func (p planned) withoutReserved(book *reserved.Book, node string) planned {
	if book == nil {
		return p
	}
	var kept []network.Service
	for _, s := range p.addresses {
		if !p.refuse(book, node, s) {
			kept = append(kept, p.withoutEndpoints(book, s))
		}
	}
	p.addresses = kept
	p.refuseHealth(book, node)
	p.pooled.ips = slices.DeleteFunc(slices.Clone(p.pooled.ips), func(ip netip.Addr) bool {
		return !slices.ContainsFunc(kept, func(s network.Service) bool { return s.Address.Addr() == ip })
	})
	return p
}

// refuse reports whether the node does not serve an address. A node port that other nodes have for themselves is served here; what is
// told of it is the same on all nodes, of which one tells.
func (p *planned) refuse(book *reserved.Book, node string, s network.Service) bool {
	if !s.External {
		return false
	}
	ip, port := s.Address.Addr(), portOf(s.ServiceAddress, s.Address)
	holding, taken := book.At(ip, port)
	if !taken {
		return false
	}
	if holding.Use == reserved.NodePort && p.hasNodePort(s) {
		return false
	}
	if holding.Use == reserved.Pod && slices.Contains(s.Endpoints, s.Address) {
		return true // the endpoint is there, and needs no translation
	}
	where := ""
	if ip.IsUnspecified() || ip.IsLoopback() {
		where = onSome(book, port)
	}
	p.refused = fmt.Sprintf("%s is not served%s: %s", described(s.ServiceAddress), where, holding)
	_, here := book.From(node, ip, port)
	return here
}

// hasNodePort tells whether the port of an address is a node port of the same Service.
func (p *planned) hasNodePort(s network.Service) bool {
	return slices.ContainsFunc(p.addresses, func(o network.Service) bool {
		return o.Address.Addr().IsUnspecified() && o.Protocol == s.Protocol && o.Address.Port() == s.Address.Port()
	})
}

// refuseHealth has the node open no port for load balancers' questions that is the cluster's own: a server or an agent that was away for a
// moment could not have it again.
func (p *planned) refuseHealth(book *reserved.Book, node string) {
	port := reserved.TCP(int32(p.healthPort))
	holding, taken := book.Anywhere(port)
	if p.healthPort == 0 || !taken {
		return
	}
	p.refused = fmt.Sprintf("health check node port %s is not served%s: %s", port, onSome(book, port), holding)
	if _, here := book.From(node, netip.IPv4Unspecified(), port); here {
		p.healthPort = 0
	}
}

// onSome says of a port that is not reserved on all machines that the others serve it.
func onSome(book *reserved.Book, port reserved.Port) string {
	if _, all := book.Everywhere(port); all {
		return ""
	}
	return " on some nodes"
}

func (p *planned) withoutEndpoints(book *reserved.Book, s network.Service) network.Service {
	closed := func(to netip.AddrPort) bool {
		holding, closed := book.Closed(to.Addr(), portOf(s.ServiceAddress, to))
		if closed {
			p.refused = fmt.Sprintf("endpoint %s is not used: %s", to, holding)
		}
		return closed
	}
	if !slices.ContainsFunc(s.Endpoints, closed) && !slices.ContainsFunc(s.Outside, closed) {
		return s
	}
	s.Endpoints = slices.DeleteFunc(slices.Clone(s.Endpoints), closed)
	s.Outside = slices.DeleteFunc(slices.Clone(s.Outside), closed)
	return s
}

// portOf is the port of an address, with the protocol of a Service.
func portOf(of network.ServiceAddress, at netip.AddrPort) reserved.Port {
	return reserved.Port{Protocol: protocolOf(of), Number: int32(at.Port())}
}

func protocolOf(of network.ServiceAddress) corev1.Protocol {
	for protocol, number := range ipfamily.Protocols {
		if number == of.Protocol {
			return protocol
		}
	}
	return ""
}

// described is an address as users know it.
func described(a network.ServiceAddress) string {
	if a.Address.Addr().IsUnspecified() {
		return fmt.Sprintf("node port %d/%s", a.Address.Port(), protocolOf(a))
	}
	return fmt.Sprintf("%s/%s", a.Address, protocolOf(a))
}

// bookChanged has all Services looked at again. Machines come and go seldom.
func (w *watch) bookChanged() {
	w.mu.Lock()
	w.moved = true
	w.mu.Unlock()
	w.look()
}

func (w *watch) noteRefused(name types.NamespacedName, why string) {
	if why != "" {
		w.refused[name] = why
		return
	}
	delete(w.refused, name)
	delete(w.toldRefused, name)
}

// tellRefused says once what of a Service is not served. All nodes serve the same, so one of them tells.
func (w *watch) tellRefused() {
	for name, why := range w.refused {
		if w.Refused != nil && w.toldRefused[name] != why && w.tellsOf(name) {
			w.toldRefused[name] = why
			w.Refused(name, why)
		}
	}
}

// tellsOf reports whether this node speaks of a Service: the one of all ready nodes to which the lot falls, or each if there is none.
func (w *watch) tellsOf(name types.NamespacedName) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	winner := ""
	for node, may := range w.announcing {
		if may.any && (winner == "" || compareWeights(name.String(), node, winner) > 0) {
			winner = node
		}
	}
	return winner == "" || winner == w.NodeName
}
