package machines

import (
	"context"
	"fmt"
	"net"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// policies lets only pods of the app "friend" reach those of "web", which are on all machines, from a machine that may be another one.
// What the machines themselves ask, as probes do, passes.
func (c *Cluster) policies(t *testing.T) {
	c.deploy(t, "friend", 1)
	c.deploy(t, "stranger", 1)
	c.expectReached(t, "friend", true)
	c.expectReached(t, "stranger", true)
	policies := c.Clients[0].NetworkingV1().NetworkPolicies("default")
	if _, err := policies.Create(t.Context(), fromFriends(), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	c.expectReached(t, "stranger", false)
	c.expectReached(t, "friend", true)
	pods, err := c.pods("web")
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range pods {
		path := fmt.Sprintf("/api/v1/namespaces/default/pods/%s:8080/proxy/healthz", pod.Name)
		if _, err := c.Clients[0].CoreV1().RESTClient().Get().AbsPath(path).DoRaw(t.Context()); err != nil {
			t.Errorf("through the agent of %s: %v", pod.Spec.NodeName, err)
		}
	}
	if err := policies.Delete(t.Context(), fromFriends().Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	c.expectReached(t, "stranger", true)
	for _, name := range []string{"friend", "stranger"} {
		if err := c.Clients[0].AppsV1().Deployments("default").Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	}
}

func fromFriends() *networkingv1.NetworkPolicy {
	named := func(app string) metav1.LabelSelector {
		return metav1.LabelSelector{MatchLabels: labels.Set{"app": app}}
	}
	return &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "from-friends"},
		Spec: networkingv1.NetworkPolicySpec{PodSelector: named("web"), Ingress: []networkingv1.NetworkPolicyIngressRule{{
			From: []networkingv1.NetworkPolicyPeer{{PodSelector: new(named("friend"))}},
		}}},
	}
}

// expectReached waits until the pod of an app reaches every pod of "web", or none.
func (c *Cluster) expectReached(t *testing.T, from string, want bool) {
	t.Helper()
	Until(t, patience, func(context.Context) string {
		clients, err := c.pods(from)
		if err != nil || len(clients) == 0 {
			return fmt.Sprintf("%d pods of %s, %v", len(clients), from, err)
		}
		servers, err := c.pods("web")
		if err != nil {
			return err.Error()
		}
		for i := range servers {
			if out, reached := c.reaches(&clients[0], &servers[i]); reached != want {
				return fmt.Sprintf("%s on %s reaches %s on %s: %v, want %v: %s",
					from, clients[0].Spec.NodeName, servers[i].Name, servers[i].Spec.NodeName, reached, want, out)
			}
		}
		return ""
	})
}

// reaches asks in a pod: the demo image has nothing but the program, which is a client too.
func (c *Cluster) reaches(from, to *corev1.Pod) (out string, reached bool) {
	out, err := c.Machines[0].Command(c.binary, "kubectl", "--kubeconfig=/etc/setpoint/admin.kubeconfig", "exec", from.Name, "--",
		"/setpoint", "kubectl", "--server=http://"+net.JoinHostPort(to.Status.PodIP, "8080"), "--request-timeout=1s", "get", "--raw=/healthz")
	return out, err == nil
}
