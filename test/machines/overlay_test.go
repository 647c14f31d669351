package machines

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/setpoint-io/setpoint/agent/net/network"
	"github.com/setpoint-io/setpoint/agent/net/network/plan"
)

// largeBytes is more than any packet holds, and no more than a server takes that does not look at it.
const largeBytes = 200 << 10

// TestTwoSegments: one of three machines is behind a router. Pods of all machines reach each other with requests that fill packets, at
// their addresses of both families,
// and do so again after the ends of VXLAN were removed, and after the machine was turned off and came back with another address
// and encrypted ways.
func TestTwoSegments(t *testing.T) {
	if err := Missing(); err != nil {
		t.Skip("needs root:", err)
	}
	c := NewRouted(t, binary(t), network.HasIPv6())
	Until(t, patience, c.nodesNotReady)
	c.deploy(t, "web", machineCount)
	for _, m := range c.Machines {
		Until(t, patience, func(context.Context) string { return c.placedOn(m) })
	}
	Until(t, patience, c.expectWays)
	c.allPairs(t)
	c.policiesHold(t)
	far := c.Machines[machineCount-1]
	for _, m := range c.Machines {
		if err := m.removeTunnel(); err != nil {
			t.Fatal(err)
		}
	}
	c.allPairs(t)
	if err := far.PowerOff(); err != nil {
		t.Fatal(err)
	}
	far.PodNetwork = string(plan.WireGuard)
	far.NodeIP = far.segment.address(100 + machineCount)
	if err := far.PowerOn(); err != nil {
		t.Fatal(err)
	}
	Until(t, patience, c.nodesNotReady)
	Until(t, patience, func(context.Context) string { return c.addressIs(far.Node, far.NodeIP) })
	for _, m := range c.Machines {
		Until(t, patience, func(context.Context) string { return c.placedOn(m) })
	}
	Until(t, patience, c.expectWays)
	c.allPairs(t)
}

// policiesHold between machines that are reached by VXLAN, too: the pod that is denied is known by its own address.
func (c *Cluster) policiesHold(t *testing.T) {
	t.Run("policies hold on all machines", func(t *testing.T) { c.policies(t) })
}

func (c *Cluster) addressIs(node, want string) string {
	n, err := c.node(node)
	if err != nil {
		return err.Error()
	}
	if got := plan.NodeOf(n).IP.String(); got != want {
		return fmt.Sprintf("%s has the address %s, want %s", node, got, want)
	}
	return ""
}

func (c *Cluster) node(name string) (*corev1.Node, error) {
	return Ask(c, func(client kubernetes.Interface) (*corev1.Node, error) {
		return client.CoreV1().Nodes().Get(context.Background(), name, metav1.GetOptions{})
	})
}

// expectWays compares what the nodes tell with how the machines are connected.
func (c *Cluster) expectWays(context.Context) string {
	for _, a := range c.Machines {
		for _, b := range c.Machines {
			from, err := c.node(a.Node)
			if err != nil {
				return err.Error()
			}
			to, err := c.node(b.Node)
			if err != nil {
				return err.Error()
			}
			want := plan.ByVXLAN
			switch {
			case a == b:
				want = plan.Same
			case a.PodNetwork != "" || b.PodNetwork != "":
				want = plan.ByWireGuard
			case a.segment == b.segment:
				want = plan.ByRoute
			}
			if got := plan.Choose(plan.NodeOf(from), plan.NodeOf(to)); got.Way != want {
				return fmt.Sprintf("%s to %s: %+v, want %s", a.Node, b.Node, got, want)
			}
			if got := plan.ChooseSecond(plan.NodeOf(from), plan.NodeOf(to)); c.dual && got.Way != want {
				return fmt.Sprintf("%s to %s by IPv6: %+v, want %s", a.Node, b.Node, got, want)
			}
		}
	}
	return ""
}

// allPairs waits until each pod of web reaches each with a large request, and each machine reaches each pod.
func (c *Cluster) allPairs(t *testing.T) {
	t.Helper()
	Until(t, patience, func(context.Context) string {
		pods, err := c.pods("web")
		if err != nil || readyElsewhere(pods, "") < machineCount {
			return fmt.Sprintf("pods are not ready: %v\n%s", err, describe(pods))
		}
		for i := range pods {
			if c.dual && len(pods[i].Status.PodIPs) != 2 {
				return fmt.Sprintf("%s has the addresses %v", pods[i].Name, pods[i].Status.PodIPs)
			}
			for _, ip := range pods[i].Status.PodIPs {
				if why := c.everybodyReaches(&pods[i], ip.IP, pods); why != "" {
					return why
				}
			}
		}
		return ""
	})
}

// everybodyReaches returns who does not reach a pod at one of its addresses.
func (c *Cluster) everybodyReaches(to *corev1.Pod, at string, pods []corev1.Pod) string {
	server := net.JoinHostPort(at, "8080")
	for i := range pods {
		if out, err := c.post(&pods[i], server); err != nil {
			return fmt.Sprintf("%s on %s to %s on %s: %v %s", pods[i].Name, pods[i].Spec.NodeName, server, to.Spec.NodeName, err, out)
		}
	}
	for _, m := range c.Machines {
		if out, err := m.Command(c.binary, "kubectl", "--server=http://"+server, "--request-timeout=2s", "get", "--raw=/healthz"); err != nil {
			return fmt.Sprintf("%s to %s on %s: %v %s", m.Node, server, to.Spec.NodeName, err, out)
		}
	}
	return ""
}

// post sends more than a packet holds from a pod to a server.
func (c *Cluster) post(from *corev1.Pod, server string) (string, error) {
	cmd := exec.Command(c.binary, "kubectl", "--kubeconfig="+c.Kubeconfig(), "exec", "-i", from.Name, "--", "/setpoint", "kubectl",
		"--server=http://"+server, "--request-timeout=3s", "create", "--raw=/", "-f", "-")
	cmd.Stdin = strings.NewReader(strings.Repeat("x", largeBytes))
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// removeTunnel removes the machine's end of VXLAN, and all that leads through it.
func (m *Machine) removeTunnel() error {
	namespace, err := netns.GetFromPid(m.init.Process.Pid)
	if err != nil {
		return err
	}
	defer namespace.Close()
	handle, err := netlink.NewHandleAt(namespace)
	if err != nil {
		return err
	}
	defer handle.Close()
	link, err := handle.LinkByName(network.VXLANDevice)
	return errors.Join(err, handle.LinkDel(link))
}
