package agent

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/agent/base/events"
	"github.com/setpoint-io/setpoint/agent/net/router/table"
)

// DNSProblem is True on a Node whose pods get no answers of the cluster's DNS, because other software has its port.
const DNSProblem corev1.NodeConditionType = "DNSProblem"

// takenPorts are ports that other software has, by their names, with what to tell of them; "": it has them no longer. mu guards them.
type takenPorts struct {
	mu    sync.Mutex
	known map[string]string
}

// note reports whether this is news.
func (p *takenPorts) note(port, problem string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.known[port]
	if p.known == nil {
		p.known = map[string]string{}
	}
	p.known[port] = problem
	return before != problem
}

// problems are in the order of the names.
func (p *takenPorts) problems() (all []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, port := range slices.Sorted(maps.Keys(p.known)) {
		if problem := p.known[port]; problem != "" {
			all = append(all, problem)
		}
	}
	return all
}

// condition is True while there are problems.
func (p *takenPorts) condition(kind corev1.NodeConditionType, otherwise string) corev1.NodeCondition {
	c := corev1.NodeCondition{Type: kind, Status: corev1.ConditionFalse, Reason: "PortsOpen", Message: otherwise}
	if problems := p.problems(); len(problems) > 0 {
		c.Status, c.Reason, c.Message = corev1.ConditionTrue, "PortTaken", strings.Join(problems, "; ")
	}
	return c
}

// tellTaken learns of ports, and tells of those that are taken in an event of the Node and in its condition.
func (a *agent) tellTaken(ctx context.Context, ports *takenPorts, reason string) func(port, problem string) {
	recorder := events.NewRecorder(ctx, a.Client, a.NodeName)
	about := &corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: a.NodeName, UID: types.UID(a.NodeName)}
	return func(port, problem string) {
		if !ports.note(port, problem) {
			return
		}
		if problem != "" {
			recorder.Event(about, corev1.EventTypeWarning, reason, problem)
		}
		a.look()
	}
}

func (a *agent) ingressListening(ctx context.Context) func(int, error) {
	tell := a.tellTaken(ctx, &a.ingressPorts, events.IngressPortTaken)
	return func(port int, err error) { tell(strconv.Itoa(port), ingressProblem(port, err)) }
}

func ingressProblem(port int, err error) string {
	if err == nil {
		return ""
	}
	return fmt.Sprintf("port %d serves no Ingresses of this cluster (%v): end what has it (ss -tlnp sport = :%d), or give the agent "+
		"another --ingress-http-port or --ingress-https-port", port, err, port)
}

func (a *agent) namesListening(ctx context.Context) func(string, error) {
	tell := a.tellTaken(ctx, &a.namePorts, events.DNSPortTaken)
	return func(socket string, err error) { tell(socket, namesProblem(socket, err)) }
}

func namesProblem(socket string, err error) string {
	if err == nil {
		return ""
	}
	return fmt.Sprintf("the cluster's DNS cannot listen on %s (%v): what has that port of all addresses (ss -lnp sport = :%s) has to "+
		"listen on addresses of its own only, as dnsmasq does with bind-interfaces and unbound with interface",
		socket, err, portOfSocket(socket))
}

func portOfSocket(socket string) string { return socket[strings.LastIndexByte(socket, ':')+1:] }

// portConditions say what is not served because other software has the port.
func (a *agent) portConditions() (all []corev1.NodeCondition) {
	if a.Ingress.Any() {
		all = append(all, a.ingressPorts.condition(table.NodeProblem, "the ports of Ingresses are open"))
	}
	if a.DNS != nil {
		all = append(all, a.namePorts.condition(DNSProblem, "the ports of the cluster's DNS are open"))
	}
	return all
}
