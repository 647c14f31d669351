package loadbalancer

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
)

// AddressTaken is the condition, and the reason of the event, of a Service whose external address, or that of its load balancer, leads to
// an older Service: nodes serve the oldest at each address and port.
const AddressTaken = "setpoint.io/AddressTaken"

const addressTakenReason = "AddressTaken"

type claim struct {
	protocol corev1.Protocol
	at       netip.AddrPort
}

// claimsOf are the addresses of a Service that others can claim too.
func claimsOf(s *corev1.Service) (all []claim) {
	texts := slices.Clone(s.Spec.ExternalIPs)
	for _, i := range s.Status.LoadBalancer.Ingress {
		texts = append(texts, i.IP)
	}
	for _, text := range texts {
		ip, err := netip.ParseAddr(text)
		if err != nil {
			continue
		}
		for _, p := range s.Spec.Ports {
			all = append(all, claim{p.Protocol, netip.AddrPortFrom(ip.Unmap(), uint16(p.Port))})
		}
	}
	return all
}

// olderFirst is the order in which nodes serve Services that claim one address: by seconds, then by name.
func olderFirst(a, b *corev1.Service) int {
	return cmp.Or(cmp.Compare(a.CreationTimestamp.Unix(), b.CreationTimestamp.Unix()),
		cmp.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name))
}

// losers says of each Service that does not have all that it claims who has the first of it.
func losers(services []*corev1.Service) map[*corev1.Service]string {
	lost, holders := map[*corev1.Service]string{}, map[claim]*corev1.Service{}
	for _, s := range slices.SortedFunc(slices.Values(services), olderFirst) {
		for _, c := range claimsOf(s) {
			switch holder := holders[c]; {
			case holder == nil:
				holders[c] = s
			case holder != s && lost[s] == "":
				lost[s] = fmt.Sprintf("%s/%s belongs to Service %s, which is older", c.at, c.protocol, reconcile.KeyOf(holder))
			}
		}
	}
	return lost
}

// writeTaken sets the condition, or takes it away, and writes the event when it is new.
func (c *controller) writeTaken(ctx context.Context, s *corev1.Service, message string) error {
	before := meta.FindStatusCondition(s.Status.Conditions, AddressTaken)
	next := s.DeepCopy()
	switch {
	case message == "" && before == nil, before != nil && before.Message == message:
		return nil
	case message == "":
		meta.RemoveStatusCondition(&next.Status.Conditions, AddressTaken)
	default:
		c.env.Events.Event(s, corev1.EventTypeWarning, addressTakenReason, message)
		meta.SetStatusCondition(&next.Status.Conditions, metav1.Condition{
			Type: AddressTaken, Status: metav1.ConditionTrue, Reason: addressTakenReason, ObservedGeneration: s.Generation, Message: message,
		})
	}
	_, err := c.env.Client.CoreV1().Services(next.Namespace).UpdateStatus(reconcile.WithCause(ctx, s), next, metav1.UpdateOptions{})
	return err
}
