package agent

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/agent/events"
	"github.com/setpoint-io/setpoint/agent/router/table"
)

// ingressPorts are those of Ingresses, with what keeps them from being open; "": they are. mu guards them.
type ingressPorts struct {
	mu    sync.Mutex
	known map[int]string
}

// note reports whether this is news.
func (p *ingressPorts) note(port int, err error) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := ""
	if err != nil {
		text = err.Error()
	}
	before, known := p.known[port]
	if p.known == nil {
		p.known = map[int]string{}
	}
	p.known[port] = text
	return !known && err != nil || known && before != text
}

// problems say which ports are not open, in order.
func (p *ingressPorts) problems() (all []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, port := range slices.Sorted(maps.Keys(p.known)) {
		if text := p.known[port]; text != "" {
			all = append(all, ingressProblem(port, text))
		}
	}
	return all
}

func ingressProblem(port int, text string) string {
	return fmt.Sprintf("port %d serves no Ingresses of this cluster (%s): end what has it (ss -tlnp sport = :%d), or give the agent "+
		"another --ingress-http-port or --ingress-https-port", port, text, port)
}

// ingressListening learns whether a port is open, and tells of it in an event and in the Node's condition.
func (a *agent) ingressListening(ctx context.Context) func(int, error) {
	recorder := events.NewRecorder(ctx, a.Client, a.NodeName)
	about := &corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: a.NodeName, UID: types.UID(a.NodeName)}
	return func(port int, err error) {
		if !a.ingressPorts.note(port, err) {
			return
		}
		if err != nil {
			recorder.Event(about, corev1.EventTypeWarning, events.IngressPortTaken, ingressProblem(port, err.Error()))
		}
		a.look()
	}
}

// ingressConditions say where Ingresses are not served that should be.
func (a *agent) ingressConditions() []corev1.NodeCondition {
	if !a.Ingress.Any() {
		return nil
	}
	c := corev1.NodeCondition{
		Type: table.NodeProblem, Status: corev1.ConditionFalse, Reason: "PortsOpen", Message: "the ports of Ingresses are open",
	}
	if problems := a.ingressPorts.problems(); len(problems) > 0 {
		c.Status, c.Reason, c.Message = corev1.ConditionTrue, "PortTaken", strings.Join(problems, "; ")
	}
	return []corev1.NodeCondition{c}
}
