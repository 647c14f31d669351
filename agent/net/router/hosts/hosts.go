package hosts

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Annotation on an Ingress, a Gateway, a ListenerSet or a route shares the hosts that its namespace has: namespaces with commas between
// them, or "*" for all.
const Annotation = "setpoint.io/share-hosts-with"

// Host is a name or a wildcard, "*.example.com", in lower case; "" is that of rules without one.
type Host string

// Specificity orders hosts that are for one name: the name itself is higher than a wildcard, a longer wildcard than a shorter one, and
// each than none.
func (h Host) Specificity() int {
	if h != "" && !strings.HasPrefix(string(h), "*.") {
		return math.MaxInt
	}
	return len(h)
}

// Claim is an object that names a host.
type Claim struct {
	// Port is 0 for the ports where Ingresses are served, which are one place, and else the nodes' port.
	Port   int
	Host   Host
	Kind   string
	Object metav1.Object
	// Gateway is the namespace of the Gateway by which the object is served; "": it is an Ingress.
	Gateway string
}

// String names the object.
func (c Claim) String() string {
	return fmt.Sprintf("%s %s/%s", c.Kind, c.Object.GetNamespace(), c.Object.GetName())
}

func (c Claim) compare(d Claim) int {
	mine, other := c.Object.GetCreationTimestamp(), d.Object.GetCreationTimestamp()
	return cmp.Or(mine.Compare(other.Time), cmp.Compare(c.Object.GetNamespace(), d.Object.GetNamespace()),
		cmp.Compare(c.Object.GetName(), d.Object.GetName()), cmp.Compare(c.Kind, d.Kind))
}

// Book knows who has each host. The nil Book knows none.
type Book struct {
	held map[place]holder
}

type place struct {
	port int
	host Host
}

type holder struct {
	first Claim
	// shared are namespaces that may use the host too.
	shared []string
}

// New reads all claims.
func New(all []Claim) *Book {
	b := &Book{held: map[place]holder{}}
	all = slices.Clone(all)
	slices.SortFunc(all, Claim.compare)
	for _, c := range all {
		at := place{c.Port, c.Host}
		h, known := b.held[at]
		if !known {
			h.first = c
		}
		if c.Object.GetNamespace() == h.first.Object.GetNamespace() {
			h.shared = append(h.shared, sharing(c.Object)...)
		}
		b.held[at] = h
	}
	return b
}

func sharing(o metav1.Object) (namespaces []string) {
	for _, name := range strings.Split(o.GetAnnotations()[Annotation], ",") {
		if name = strings.TrimSpace(name); name != "" {
			namespaces = append(namespaces, name)
		}
	}
	return namespaces
}

// Has reports whether the claim's host is its namespace's, not only shared with it.
func (b *Book) Has(c Claim) bool {
	h, known := b.held[place{c.Port, c.Host}]
	return known && h.first.Object.GetNamespace() == c.Object.GetNamespace()
}

// Taken says who keeps a claim from its host, if anybody does.
func (b *Book) Taken(c Claim) (by Claim, taken bool) {
	if b == nil {
		return Claim{}, false
	}
	h, known := b.held[place{c.Port, c.Host}]
	switch namespace := c.Object.GetNamespace(); {
	case !known, namespace == h.first.Object.GetNamespace(), c.Gateway != "" && c.Gateway == h.first.Gateway:
		return Claim{}, false
	case slices.Contains(h.shared, namespace), slices.Contains(h.shared, "*"):
		return Claim{}, false
	}
	return h.first, true
}

// Reason is that of conditions and events about a host that another namespace has.
const Reason = "HostTaken"

// Thing is the host, as the beginning of a sentence.
func (c Claim) Thing() string {
	if c.Host == "" {
		return "requests without a host"
	}
	return fmt.Sprintf("host %q", c.Host)
}

// Message says so to the owner of the claim.
func (c Claim) Message(by Claim) string {
	return fmt.Sprintf("%s: %s of namespace %s was first; its annotation %s can name namespace %s",
		c.Thing(), strings.Replace(by.String(), by.Object.GetNamespace()+"/", "", 1), by.Object.GetNamespace(), Annotation, c.Object.GetNamespace())
}
