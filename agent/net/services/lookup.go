package services

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/agent/net/network"
	"github.com/setpoint-io/setpoint/internal/reserved"
)

// Lookup is what the addresses of Services lead to, seen from one node: the same that Watch hands to that node's network.
type Lookup struct{ book *book }

// NewLookup plans for a node. behind are the slices of a Service, and what the book has reserved leads nowhere.
func NewLookup(all []*corev1.Service, behind func(*corev1.Service) []*discoveryv1.EndpointSlice, here Place, book *reserved.Book) Lookup {
	l := Lookup{newBook()}
	for _, s := range all {
		name := types.NamespacedName{Namespace: s.Namespace, Name: s.Name}
		l.book.put(name, entry{plan(s, behind(s), here).withoutReserved(book, here.Node), s.CreationTimestamp.Unix()})
	}
	return l
}

// At is what an address leads to, and whose it is.
func (l Lookup) At(address network.ServiceAddress) (s network.Service, holder types.NamespacedName, ok bool) {
	if holder, ok = l.book.holder(address); ok {
		s, ok = l.book.at(address)
	}
	return s, holder, ok
}
