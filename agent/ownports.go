package agent

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/setpoint-io/setpoint/internal/reserved"
)

// ownPorts are what pods and Gateways have of this machine's ports, in order. mu guards them.
type ownPorts struct {
	mu       sync.Mutex
	pods     []reserved.Port
	gateways []int32
}

func (p *ownPorts) told() (pods []reserved.Port, gateways []int32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pods, p.gateways
}

// setPods reports whether that is news.
func (p *ownPorts) setPods(ports []reserved.Port) bool {
	slices.SortFunc(ports, func(a, b reserved.Port) int {
		return cmp.Or(cmp.Compare(a.Number, b.Number), strings.Compare(string(a.Protocol), string(b.Protocol)))
	})
	ports = slices.Compact(ports)
	p.mu.Lock()
	defer p.mu.Unlock()
	news := !slices.Equal(p.pods, ports)
	p.pods = ports
	return news
}

func (p *ownPorts) setGateways(numbers []int) bool {
	var ports []int32
	for _, n := range numbers {
		ports = append(ports, int32(n))
	}
	slices.Sort(ports)
	p.mu.Lock()
	defer p.mu.Unlock()
	news := !slices.Equal(p.gateways, ports)
	p.gateways = ports
	return news
}

// followPorts has the Node tell which ports of this machine its pods have, so that no Service gets them at its addresses.
func (a *agent) followPorts(bound informers.SharedInformerFactory) {
	pods := bound.Core().V1().Pods()
	lister := pods.Informer().GetStore()
	look := func(any) {
		var ports []reserved.Port
		for _, o := range lister.List() {
			if pod := o.(*corev1.Pod); pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
				ports = append(ports, reserved.PortsOf(pod)...)
			}
		}
		if a.ports.setPods(ports) {
			a.look()
		}
	}
	// It fails only where the informer has stopped already.
	_, _ = pods.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: look, UpdateFunc: func(_, o any) { look(o) }, DeleteFunc: look,
	})
}

// gatewaysOpened tells of the ports that are open for Gateways alone, and hands them on.
func (a *agent) gatewaysOpened(next func([]int)) func([]int) {
	return func(numbers []int) {
		if a.ports.setGateways(numbers) {
			a.look()
		}
		if next != nil {
			next(numbers)
		}
	}
}
