package scenes

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/setpoint-io/setpoint/setpointtest"
	"github.com/setpoint-io/setpoint/test/judges"
)

// evictedAfterSeconds is how long the pods tolerate that their node is silent.
const evictedAfterSeconds = 2

// TestANodeDies shows what becomes of a node that falls silent, of its pods and of the Service before them, in seven steps, in
// virtual time. The log tells when each was seen.
func TestANodeDies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := setpointtest.Start(t, setpointtest.Config{Nodes: nodes})
		s := &scene{T: t, namespace: "default", client: c.Kubernetes()}
		record := judges.Follow(t, c.RESTConfig(), judges.Resources...)
		s.deploy("shop", nodes, spreadAndHasty)
		s.expose("shop")
		s.seeDeployment("shop", "complete", complete)
		s.see("a backend on each node", s.backends("shop", func(b []string) bool { return len(b) == nodes }))
		victim := s.pods("shop")[0]
		step := s.steps()

		c.KillNode(victim.Spec.NodeName)
		step("1. the node is not Ready any more", s.ready(victim.Spec.NodeName, corev1.ConditionUnknown))
		step("2. it has the taint that evicts", s.unreachable(victim.Spec.NodeName, true))
		step("3. its pod is not Ready", s.pod(victim.Name, func(p *corev1.Pod) bool { return !isReady(p) }))
		step("4. the Service does without it", s.backends("shop", func(b []string) bool { return !slices.Contains(b, victim.Name) }))
		step("5. its pod is deleted", s.pod(victim.Name, func(p *corev1.Pod) bool { return p.DeletionTimestamp != nil }))
		step("6. another one serves elsewhere", s.servesWithout("shop", victim.Spec.NodeName))
		c.StartNode(victim.Spec.NodeName)
		step("7. the node is back, without the taint", s.unreachable(victim.Spec.NodeName, false))
		s.see("the node is Ready", s.ready(victim.Spec.NodeName, corev1.ConditionTrue))
		s.see("the dead pod is gone", s.pod(victim.Name, func(p *corev1.Pod) bool { return p.Name == "" }))
		record.Judged(t).Report(t)
	})
}

// look says what it saw, and whether that is what was wanted.
type look = func(context.Context) (saw string, ok bool)

// steps are seen one after the other; the log tells how long after the first call of steps.
func (s *scene) steps() func(what string, look look) {
	begin := time.Now()
	return func(what string, look look) {
		s.Helper()
		s.see(what, look)
		s.Logf("%6.2f s  %s", time.Since(begin).Seconds(), what)
	}
}

// spreadAndHasty puts one pod on each node if it can, and evicts it soon from a silent one.
func spreadAndHasty(d *appsv1.Deployment) {
	spec := &d.Spec.Template.Spec
	spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
		MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: d.Spec.Selector,
	}}
	for _, key := range []string{corev1.TaintNodeUnreachable, corev1.TaintNodeNotReady} {
		spec.Tolerations = append(spec.Tolerations, corev1.Toleration{
			Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(evictedAfterSeconds)),
		})
	}
}

// expose makes a Service for an app.
func (s *scene) expose(app string) {
	s.Helper()
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: app}, Spec: corev1.ServiceSpec{
		Selector: map[string]string{"app": app}, Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(8080)}}}}
	if _, err := s.client.CoreV1().Services(s.namespace).Create(s.Context(), service, metav1.CreateOptions{}); err != nil {
		s.Fatal(err)
	}
}

// backends looks at the pods behind a Service that are ready.
func (s *scene) backends(service string, wanted func(pods []string) bool) look {
	return func(ctx context.Context) (string, bool) {
		var pods []string
		of := metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + service}
		list, err := s.client.DiscoveryV1().EndpointSlices(s.namespace).List(ctx, of)
		if err != nil {
			return err.Error(), false
		}
		for _, slice := range list.Items {
			for _, e := range slice.Endpoints {
				if *e.Conditions.Ready {
					pods = append(pods, e.TargetRef.Name)
				}
			}
		}
		return fmt.Sprint(pods), wanted(pods)
	}
}

// servesWithout looks whether all pods of an app are ready, none of them on the node.
func (s *scene) servesWithout(app, node string) look {
	return func(context.Context) (string, bool) {
		pods := s.pods(app)
		return fmt.Sprintf("%d pods", len(pods)), len(pods) == nodes && !slices.ContainsFunc(pods, func(p corev1.Pod) bool {
			return p.Spec.NodeName == node || !isReady(&p)
		})
	}
}

func (s *scene) node(name string, wanted func(*corev1.Node) bool) look {
	return func(ctx context.Context) (string, bool) {
		node, err := s.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err.Error(), false
		}
		return fmt.Sprintf("%v %+v", node.Spec.Taints, node.Status.Conditions), wanted(node)
	}
}

func (s *scene) ready(node string, status corev1.ConditionStatus) look {
	return s.node(node, func(n *corev1.Node) bool {
		return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == status
		})
	})
}

func (s *scene) unreachable(node string, wanted bool) look {
	return s.node(node, func(n *corev1.Node) bool {
		return wanted == slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool {
			return t.Key == corev1.TaintNodeUnreachable && t.Effect == corev1.TaintEffectNoExecute
		})
	})
}

// pod looks at a pod; it has no name if it is gone.
func (s *scene) pod(name string, wanted func(*corev1.Pod) bool) look {
	return func(ctx context.Context) (string, bool) {
		pod, err := s.client.CoreV1().Pods(s.namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err.Error(), gone(err) && wanted(&corev1.Pod{})
		}
		return fmt.Sprintf("%+v", pod.Status), wanted(pod)
	}
}

func isReady(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}
