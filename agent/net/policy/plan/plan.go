package plan

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/setpoint-io/setpoint/agent/net/ipfamily"
)

// World is what a node knows.
type World struct {
	Policies []*networkingv1.NetworkPolicy
	// Pods are those of the cluster that have an address of their own and have not ended.
	Pods []*Pod
	// Namespaces have labels by name. One that is missing matches no selector of namespaces.
	Namespaces map[string]labels.Set
}

// Pod is what matters of a pod.
type Pod struct {
	Namespace string
	Labels    labels.Set
	// Addresses are one, or one of each family; of a pod that has just been given a new sandbox those of the former too.
	Addresses []netip.Addr
	// Here says that it runs on this node.
	Here  bool
	Ports []NamedPort
}

// NamedPort is a port to which a container of the pod gives a name.
type NamedPort struct {
	Name     string
	Protocol uint8
	Number   uint16
}

// Protocol is IANA's number of a protocol, TCP if it has no name; 0 for one that nobody knows.
func Protocol(name corev1.Protocol) uint8 {
	return ipfamily.Protocols[cmp.Or(name, corev1.ProtocolTCP)]
}

// Of plans for the pods of this node.
func Of(w World) *Table {
	p := planner{
		World: w, byNamespace: map[string][]*Pod{}, rules: map[*networkingv1.NetworkPolicy]ruled{},
		table: &Table{
			Ingress: map[netip.Addr]string{}, Egress: map[netip.Addr]string{}, Chains: map[string][]Rule{},
			Pods: map[string][]netip.Addr{}, Blocks: map[string][]Block{}, Ports: map[string][]Port{},
		},
	}
	for _, pod := range w.Pods {
		p.byNamespace[pod.Namespace] = append(p.byNamespace[pod.Namespace], pod)
	}
	for ingress, isolated := range map[bool]map[netip.Addr]string{true: p.table.Ingress, false: p.table.Egress} {
		for address, policies := range p.selected(ingress) {
			isolated[address] = p.chain(policies, ingress)
		}
	}
	return p.table
}

// planner is one run of Of. rules has those of policies that were read already.
type planner struct {
	World
	byNamespace map[string][]*Pod
	rules       map[*networkingv1.NetworkPolicy]ruled
	table       *Table
}

// ruled are the rules of one policy.
type ruled struct{ ingress, egress []Rule }

// selected are the policies of each pod here, in the order in which they were given.
func (p *planner) selected(ingress bool) map[netip.Addr][]*networkingv1.NetworkPolicy {
	kind := networkingv1.PolicyTypeEgress
	if ingress {
		kind = networkingv1.PolicyTypeIngress
	}
	of := map[netip.Addr][]*networkingv1.NetworkPolicy{}
	for _, policy := range p.Policies {
		if !slices.Contains(policy.Spec.PolicyTypes, kind) {
			continue
		}
		for _, pod := range p.matching(policy.Namespace, &policy.Spec.PodSelector) {
			for _, address := range pod.addressesHere() {
				of[address] = append(of[address], policy)
			}
		}
	}
	return of
}

// addressesHere are the pod's if it runs on this node.
func (p *Pod) addressesHere() []netip.Addr {
	if !p.Here {
		return nil
	}
	return p.Addresses
}

// matching are the pods of a namespace that a selector selects; a broken one selects none.
func (p *planner) matching(namespace string, by *metav1.LabelSelector) []*Pod {
	selector, err := metav1.LabelSelectorAsSelector(by)
	if err != nil {
		return nil
	}
	if selector.Empty() {
		return p.byNamespace[namespace]
	}
	var pods []*Pod
	for _, pod := range p.byNamespace[namespace] {
		if selector.Matches(pod.Labels) {
			pods = append(pods, pod)
		}
	}
	return pods
}

// chain has the rules of all the policies: a packet needs one of them.
func (p *planner) chain(policies []*networkingv1.NetworkPolicy, ingress bool) string {
	var rules []Rule
	for _, policy := range policies {
		if ingress {
			rules = append(rules, p.read(policy).ingress...)
		} else {
			rules = append(rules, p.read(policy).egress...)
		}
	}
	slices.SortFunc(rules, Rule.compare)
	rules = slices.Compact(rules)
	name := nameOf("ingress", rules)
	if !ingress {
		name = nameOf("egress", rules)
	}
	p.table.Chains[name] = rules
	return name
}

func (r Rule) compare(s Rule) int {
	return cmp.Or(cmp.Compare(r.Pods, s.Pods), cmp.Compare(r.Blocks, s.Blocks), cmp.Compare(r.Protocol, s.Protocol),
		cmp.Compare(r.First, s.First), cmp.Compare(r.Last, s.Last), cmp.Compare(r.Ports, s.Ports))
}

// read makes the rules of a policy and the sets that they need, once.
func (p *planner) read(policy *networkingv1.NetworkPolicy) ruled {
	if done, ok := p.rules[policy]; ok {
		return done
	}
	var r ruled
	for i := range policy.Spec.Ingress {
		rule := &policy.Spec.Ingress[i]
		r.ingress = append(r.ingress, p.rule(policy.Namespace, rule.From, rule.Ports, true)...)
	}
	for i := range policy.Spec.Egress {
		rule := &policy.Spec.Egress[i]
		r.egress = append(r.egress, p.rule(policy.Namespace, rule.To, rule.Ports, false)...)
	}
	p.rules[policy] = r
	return r
}

// rule reads one rule: each of its peers with each of its ports.
func (p *planner) rule(
	namespace string, peers []networkingv1.NetworkPolicyPeer, ports []networkingv1.NetworkPolicyPort, ingress bool,
) (rules []Rule) {
	for _, end := range p.peers(namespace, peers) {
		if len(ports) == 0 {
			rules = append(rules, end)
		}
		for _, port := range ports {
			if with, ok := p.withPort(end, port, ingress); ok {
				rules = append(rules, with)
			}
		}
	}
	return rules
}

// withPort narrows a rule to a port; a protocol that nobody knows allows nothing.
func (p *planner) withPort(rule Rule, port networkingv1.NetworkPolicyPort, ingress bool) (Rule, bool) {
	rule.Protocol = protocolOf(port)
	switch {
	case port.Port == nil:
	case port.Port.Type == intstr.String:
		rule.Ports, rule.Protocol = p.named(rule.Protocol, port.Port.StrVal, ingress), 0
		return rule, true
	default:
		rule.First, rule.Last = uint16(port.Port.IntVal), uint16(port.Port.IntVal)
		if port.EndPort != nil {
			rule.Last = uint16(*port.EndPort)
		}
	}
	return rule, rule.Protocol != 0
}

func protocolOf(port networkingv1.NetworkPolicyPort) uint8 {
	if port.Protocol == nil {
		return Protocol("")
	}
	return Protocol(*port.Protocol)
}

// peers are the other ends of a rule: anybody, or pods and blocks, each in a rule of its own.
func (p *planner) peers(namespace string, peers []networkingv1.NetworkPolicyPeer) (ends []Rule) {
	if len(peers) == 0 {
		return []Rule{{}}
	}
	var blocks []Block
	var byLabel []networkingv1.NetworkPolicyPeer
	for _, peer := range peers {
		if peer.IPBlock != nil {
			blocks = append(blocks, blocksIn(peer.IPBlock)...)
		} else {
			byLabel = append(byLabel, peer)
		}
	}
	if len(byLabel) > 0 {
		name := nameOf("pods", []any{namespace, byLabel})
		if _, known := p.table.Pods[name]; !known {
			p.table.Pods[name] = p.addresses(namespace, byLabel)
		}
		ends = append(ends, Rule{Pods: name})
	}
	if blocks = merged(blocks); len(blocks) > 0 {
		name := nameOf("blocks", blocks)
		p.table.Blocks[name] = blocks
		ends = append(ends, Rule{Blocks: name})
	}
	return ends
}

// blocksIn reads a range of either family.
func blocksIn(block *networkingv1.IPBlock) []Block {
	cidr, err := netip.ParsePrefix(block.CIDR)
	if err != nil {
		return nil
	}
	var except []netip.Prefix
	for _, text := range block.Except {
		if e, err := netip.ParsePrefix(text); err == nil {
			except = append(except, e)
		}
	}
	return blocksOf(cidr, except)
}

// selectedBy are the pods that any of the peers selects, maybe more than once.
func (p *planner) selectedBy(namespace string, peers []networkingv1.NetworkPolicyPeer) (pods []*Pod) {
	for _, peer := range peers {
		by := cmp.Or(peer.PodSelector, &metav1.LabelSelector{})
		for _, in := range p.namespaces(namespace, peer.NamespaceSelector) {
			pods = append(pods, p.matching(in, by)...)
		}
	}
	return pods
}

// namespaces are those that a selector selects; without one it is the policy's own.
func (p *planner) namespaces(own string, by *metav1.LabelSelector) []string {
	if by == nil {
		return []string{own}
	}
	selector, err := metav1.LabelSelectorAsSelector(by)
	if err != nil {
		return nil
	}
	var names []string
	for name, set := range p.Namespaces {
		if selector.Matches(set) {
			names = append(names, name)
		}
	}
	return names
}

func (p *planner) addresses(namespace string, peers []networkingv1.NetworkPolicyPeer) []netip.Addr {
	var all []netip.Addr
	for _, pod := range p.selectedBy(namespace, peers) {
		all = append(all, pod.Addresses...)
	}
	slices.SortFunc(all, netip.Addr.Compare)
	return slices.Compact(all)
}

// named is the set of all ports of a name; those of this node's pods are enough for what is received here.
func (p *planner) named(protocol uint8, port string, here bool) string {
	name := nameOf("ports", []any{protocol, port, here})
	if _, known := p.table.Ports[name]; known {
		return name
	}
	var ports []Port
	for _, pod := range p.Pods {
		for _, its := range pod.Ports {
			if its.Name != port || its.Protocol != protocol || here && !pod.Here {
				continue
			}
			for _, address := range pod.Addresses {
				ports = append(ports, Port{address, its.Protocol, its.Number})
			}
		}
	}
	slices.SortFunc(ports, Port.Compare)
	p.table.Ports[name] = slices.Compact(ports)
	return name
}

// nameBytes keep apart what somebody makes up to get another's name.
const nameBytes = 16

// nameOf is the same for equal contents, in any process.
func nameOf(kind string, content any) string {
	text, err := json.Marshal(content)
	if err != nil {
		panic(err) // these types have nothing that JSON lacks
	}
	sum := sha256.Sum256(text)
	return kind + "-" + hex.EncodeToString(sum[:nameBytes])
}
