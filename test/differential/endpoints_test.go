package differential

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/setpoint-io/setpoint/controllers/reconcile/reconciletest"
)

// endpointsWorld is a Service with pods that come, change and go.
type endpointsWorld struct {
	plain
	first *corev1.Service
	pods  int
}

func newEndpoints(g *generator) workload {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: workloadName, Labels: map[string]string{"l": "1"}}}
	setService(g, s)
	return &endpointsWorld{first: s}
}

// setService draws every field that decides which addresses and ports a Service has.
func setService(g *generator, s *corev1.Service) {
	first := s.Spec // its first family and whether it is headless never change
	s.Spec.Type = corev1.ServiceTypeClusterIP
	s.Spec.Selector = pick(g, nil, map[string]string{"app": "a"}, map[string]string{"app": "a"}, map[string]string{"app": "a", "tier": "b"})
	s.Spec.IPFamilies = pick(g, []corev1.IPFamily{corev1.IPv4Protocol}, []corev1.IPFamily{corev1.IPv6Protocol},
		[]corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol})
	s.Spec.ClusterIP = "10.0.0.1"
	if s.Spec.IPFamilies[0] == corev1.IPv6Protocol {
		s.Spec.ClusterIP = "fd00::1"
	}
	if g.chance(3) {
		s.Spec.ClusterIP = corev1.ClusterIPNone
	}
	if first.ClusterIP != "" {
		s.Spec.ClusterIP, s.Spec.IPFamilies = first.ClusterIP, first.IPFamilies
	}
	s.Spec.PublishNotReadyAddresses = g.chance(3)
	s.Spec.Ports = nil
	for i := range g.IntN(3) {
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{
			Name: fmt.Sprintf("p%d", i), Port: int32(80 + i), Protocol: pick(g, corev1.ProtocolTCP, corev1.ProtocolUDP),
			TargetPort:  pick(g, intstr.FromInt32(8080), intstr.FromString("web"), intstr.FromString("none")),
			AppProtocol: pick(g, nil, new("http")),
		})
	}
}

func (l *endpointsWorld) create(w *world) {
	s := l.first.DeepCopy()
	s.Namespace = w.namespace
	create(w, w.Client.CoreV1().Services(w.namespace), s)
}

func (l *endpointsWorld) edit(g *generator) (string, func(w *world)) {
	next := l.first.DeepCopy()
	setService(g, next)
	label := fmt.Sprint(g.IntN(3))
	services := func(w *world) api[*corev1.Service] { return w.Client.CoreV1().Services(w.namespace) }
	switch g.IntN(8) {
	case 0:
		return "service " + text1(next.Spec), func(w *world) {
			change(w, services(w), workloadName, func(s *corev1.Service) { s.Spec = next.Spec })
		}
	case 1:
		return "label " + label, func(w *world) {
			change(w, services(w), workloadName, func(s *corev1.Service) { s.Labels = map[string]string{"l": label} })
		}
	case 2:
		return "service goes", func(w *world) {
			_ = w.Client.CoreV1().Services(w.namespace).Delete(context.Background(), workloadName, metav1.DeleteOptions{})
		}
	case 3, 4, 5:
		l.pods++
		p := servicePod(g, l.pods)
		return "pod " + p.Name, func(w *world) {
			p := p.DeepCopy()
			p.Namespace = w.namespace
			reconciletest.Add(w.World, p)
		}
	default:
		seed := g.Uint64()
		return "pods change", func(w *world) { changePods(w, newGenerator(seed)) }
	}
}

// servicePod draws every field of a pod that its address depends on.
func servicePod(g *generator, n int) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("pod-%d", n), Labels: map[string]string{"app": pick(g, "a", "a", "a", "b")}}}
	p.Labels["tier"] = pick(g, "b", "b", "c")
	p.Spec.NodeName = pick(g, "", "node-0", "node-1")
	p.Spec.Hostname, p.Spec.Subdomain = pick(g, "", "host"), pick(g, "", workloadName, "other")
	p.Spec.RestartPolicy = pick(g, corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever)
	p.Spec.Containers = []corev1.Container{{Name: "c", Image: "image"}}
	if !g.chance(4) {
		p.Spec.Containers[0].Ports = []corev1.ContainerPort{{Name: "web", ContainerPort: int32(8000 + g.IntN(2)), Protocol: corev1.ProtocolTCP}}
	}
	setPod(g, p, n)
	return p
}

func setPod(g *generator, p *corev1.Pod, n int) {
	p.Status.Phase = pick(g, corev1.PodPending, corev1.PodRunning, corev1.PodRunning, corev1.PodRunning, corev1.PodFailed, corev1.PodSucceeded)
	ips := []corev1.PodIP{{IP: fmt.Sprintf("10.1.0.%d", n)}, {IP: fmt.Sprintf("fd01::%d", n)}}
	p.Status.PodIPs = pick(g, ips, ips, ips[:1], ips[1:], nil)
	p.Status.PodIP = ""
	if len(p.Status.PodIPs) > 0 {
		p.Status.PodIP = p.Status.PodIPs[0].IP
	}
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: pick(g, corev1.ConditionTrue, corev1.ConditionTrue, corev1.ConditionFalse)}}
}

// changePods changes the status of some pods, and deletes others.
func changePods(w *world, g *generator) {
	for _, p := range w.Pods(w.namespace) {
		var n int
		_, _ = fmt.Sscanf(p.Name, "pod-%d", &n)
		switch g.IntN(5) {
		case 0:
			_ = w.Client.CoreV1().Pods(w.namespace).Delete(context.Background(), p.Name, metav1.DeleteOptions{})
		case 1, 2:
			next := p.DeepCopy()
			setPod(g, next, n)
			changeStatus(w, w.Client.CoreV1().Pods(w.namespace), p.Name, func(p *corev1.Pod) { p.Status = next.Status })
		case 3:
			tier := pick(g, "b", "c")
			change(w, w.Client.CoreV1().Pods(w.namespace), p.Name, func(p *corev1.Pod) { p.Labels["tier"] = tier })
		}
	}
}

func (l *endpointsWorld) describe(w *world, out *strings.Builder) {
	list, err := w.Client.CoreV1().Endpoints(w.namespace).List(context.Background(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, e := range list.Items {
		fmt.Fprintf(out, "  endpoints %s labels=%v capacity=%q triggered=%v %s\n", e.Name, e.Labels,
			e.Annotations[corev1.EndpointsOverCapacity], e.Annotations[corev1.EndpointsLastChangeTriggerTime] != "", text1(e.Subsets))
	}
}

// chance are fields that name a run.
var chance = regexp.MustCompile(`,?"(uid|resourceVersion|creationTimestamp)":("[^"]*"|null)`)

// text1 is an object in one line, without uids and versions, which are chance.
func text1(o any) string {
	body, err := json.Marshal(o)
	if err != nil {
		return err.Error()
	}
	return chance.ReplaceAllString(string(body), "")
}

// mirrorWorld are Endpoints that somebody keeps, of a Service without a selector.
type mirrorWorld struct {
	plain
	// was is what the slices were after the last step.
	was string
}

// sliceLabels are those of a slice, in a description.
var sliceLabels = regexp.MustCompile(`(?m)^ *slice .* labels=(map\[[^]]*\])`)

// labelsOfSlices are the different labels that slices have.
func labelsOfSlices(description string) map[string]bool {
	all := map[string]bool{}
	for _, match := range sliceLabels.FindAllStringSubmatch(description, -1) {
		all[match[1]] = true
	}
	return all
}

// excuse: upstream takes a slice that it has for other ports, may then have to create one for it, and asks for the
// name that exists already: "already exists", in each of its tries, and nothing changes, or nothing more: some slices then have
// the labels of the Endpoints before.
func (l *mirrorWorld) excuse(ours, upstream string) string {
	stopped := len(labelsOfSlices(ours)) == 1 && len(labelsOfSlices(upstream)) > 1
	if strings.Contains(ours, "changed=true") && (strings.Contains(upstream, "changed=false") || stopped) {
		return "upstream cannot create a slice under a name that is taken"
	}
	return ""
}

func newMirror(*generator) workload { return &mirrorWorld{} }

func (l *mirrorWorld) create(w *world) {
	create(w, w.Client.CoreV1().Services(w.namespace), &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: workloadName, Namespace: w.namespace}})
}

func (l *mirrorWorld) edit(g *generator) (string, func(w *world)) {
	ctx := context.Background()
	switch g.IntN(10) {
	case 0:
		selector := pick(g, nil, nil, map[string]string{"app": "a"})
		return fmt.Sprint("selector ", selector), func(w *world) {
			change(w, w.Client.CoreV1().Services(w.namespace), workloadName, func(s *corev1.Service) { s.Spec.Selector = selector })
		}
	case 1:
		return "service goes", func(w *world) {
			_ = w.Client.CoreV1().Services(w.namespace).Delete(ctx, workloadName, metav1.DeleteOptions{})
		}
	case 2:
		return "service comes", func(w *world) {
			if _, err := w.Client.CoreV1().Services(w.namespace).Get(ctx, workloadName, metav1.GetOptions{}); err != nil {
				l.create(w)
			}
		}
	case 3:
		return "endpoints go", func(w *world) {
			_ = w.Client.CoreV1().Endpoints(w.namespace).Delete(ctx, workloadName, metav1.DeleteOptions{})
		}
	}
	next := customEndpoints(g)
	return "endpoints " + text1(next), func(w *world) {
		e, kind := next.DeepCopy(), w.Client.CoreV1().Endpoints(w.namespace)
		e.Namespace = w.namespace
		found, err := kind.Get(ctx, workloadName, metav1.GetOptions{})
		if err != nil {
			_, err = kind.Create(ctx, e, metav1.CreateOptions{})
		} else {
			found.Labels, found.Annotations, found.Subsets = e.Labels, e.Annotations, e.Subsets
			_, err = kind.Update(ctx, found, metav1.UpdateOptions{})
		}
		if err != nil {
			w.t.Fatal(err)
		}
	}
}

// customEndpoints draws every field that is mirrored, or decides whether it is.
func customEndpoints(g *generator) *corev1.Endpoints {
	e := &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Name: workloadName}}
	e.Labels = pick(g, nil, map[string]string{"l": "1"}, map[string]string{"l": "2"}, map[string]string{discoveryv1.LabelSkipMirror: "true"})
	e.Annotations = pick(g, nil, nil, map[string]string{"a": "1"}, map[string]string{"control-plane.alpha.kubernetes.io/leader": "x"},
		map[string]string{corev1.EndpointsLastChangeTriggerTime: "2000-01-01T00:00:00Z", "a": "2"})
	for range g.IntN(3) {
		subset := corev1.EndpointSubset{Addresses: addresses(g), NotReadyAddresses: addresses(g)}
		for i := range g.IntN(3) {
			subset.Ports = append(subset.Ports, corev1.EndpointPort{
				Name: fmt.Sprintf("p%d", i), Port: int32(80 + g.IntN(2)), Protocol: pick(g, corev1.ProtocolTCP, corev1.ProtocolUDP), AppProtocol: pick(g, nil, new("http")),
			})
		}
		e.Subsets = append(e.Subsets, subset)
	}
	return e
}

func addresses(g *generator) (list []corev1.EndpointAddress) {
	for range g.IntN(3) {
		n := 1 + g.IntN(6)
		list = append(list, corev1.EndpointAddress{
			IP: pick(g, fmt.Sprintf("10.1.0.%d", n), fmt.Sprintf("fd01::%d", n)), Hostname: pick(g, "", "host"), NodeName: pick(g, nil, new("node-0")),
			TargetRef: pick(g, nil, &corev1.ObjectReference{Kind: "Pod", Name: fmt.Sprintf("pod-%d", n)}),
		})
	}
	return list
}

func (l *mirrorWorld) describe(w *world, out *strings.Builder) {
	list, err := w.Client.DiscoveryV1().EndpointSlices(w.namespace).List(context.Background(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	var lines []string
	for _, s := range list.Items {
		slices.SortFunc(s.Endpoints, func(a, b discoveryv1.Endpoint) int { return strings.Compare(text1(a), text1(b)) })
		slices.SortFunc(s.Ports, func(a, b discoveryv1.EndpointPort) int { return strings.Compare(text1(a), text1(b)) })
		line := fmt.Sprintf("  slice %s labels=%v annotations=%v %s %s", s.AddressType, s.Labels, s.Annotations, text1(s.Endpoints), text1(s.Ports))
		for _, o := range s.OwnerReferences {
			line += fmt.Sprintf(" owner=%s %s %v %v", o.Kind, o.Name, *o.Controller, *o.BlockOwnerDeletion)
		}
		lines = append(lines, line+"\n")
	}
	slices.Sort(lines)
	now := strings.Join(lines, "")
	fmt.Fprintf(out, "  changed=%v\n%s", now != l.was, now)
	l.was = now
}
