package whatif

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint"
	"github.com/setpoint-io/setpoint/server/inprocess"
)

// ledger is what is seen of a fork, step by step.
type ledger struct {
	fork  *fork
	since uint64 // revision
	// base are the pods when the act began, pods those of now.
	base, pods map[types.UID]*corev1.Pod
	owners     map[types.UID]string // of ReplicaSets
	nodes      map[string]string    // what is the matter with each
	// nodesBefore is that when the act began.
	nodesBefore map[string]string
	ready       map[string]map[string]int
	had         map[string]int // at the end of the step before
	down        map[string]time.Duration
	budgets     map[string]*budget
	answer      *Answer
	recording   bool
	moved       time.Duration             // when something changed last
	taints      map[string][]corev1.Taint // of nodes
	last        []string                  // of the newest step that changed something
}

// budget is one PodDisruptionBudget.
type budget struct {
	Budget
	since  time.Duration
	broken bool
	// before: it has been since before the act.
	before bool
}

func newLedger(f *fork, answer *Answer) *ledger {
	l := &ledger{
		fork: f, answer: answer, since: f.revision, pods: map[types.UID]*corev1.Pod{}, owners: map[types.UID]string{}, nodes: map[string]string{},
		taints: map[string][]corev1.Taint{},
		ready:  map[string]map[string]int{}, had: map[string]int{}, down: map[string]time.Duration{}, budgets: map[string]*budget{},
	}
	for _, pod := range f.copied.pods {
		l.pods[pod.UID] = pod
	}
	return l
}

// fill reads what is not known from the copying.
func (l *ledger) fill(ctx context.Context) error {
	sets, err := l.fork.client.AppsV1().ReplicaSets("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range sets.Items {
		if owner := metav1.GetControllerOf(&sets.Items[i]); owner != nil {
			l.owners[sets.Items[i].UID] = strings.ToLower(owner.Kind) + "/" + owner.Name
		}
	}
	endpoints, err := l.fork.client.DiscoveryV1().EndpointSlices("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range endpoints.Items {
		l.slice(&endpoints.Items[i])
	}
	nodes, err := l.fork.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range nodes.Items {
		l.node(&nodes.Items[i], 0)
	}
	budgets, err := l.fork.client.PolicyV1().PodDisruptionBudgets("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range budgets.Items {
		l.budget(&budgets.Items[i], 0)
	}
	l.outages(0)
	return nil
}

// begin is called when the act begins: what comes from now on is because of it.
func (l *ledger) begin() {
	l.base = make(map[types.UID]*corev1.Pod, len(l.pods))
	for uid, pod := range l.pods {
		l.base[uid] = pod
	}
	l.nodesBefore = maps.Clone(l.nodes)
	l.recording, l.last = true, nil
}

// step looks at what has changed since the last one, and says whether anything has but for heartbeats.
func (l *ledger) step(ctx context.Context, at time.Duration) (moved bool, err error) {
	changes, err := l.fork.Changes(l.since)
	if err != nil {
		return false, fmt.Errorf("the fork changes faster than it can be looked at: %w", err)
	}
	var last []string
	for _, change := range news(changes) {
		if change.Resource.Resource != "events" {
			moved = true
			last = append(last, strings.Trim(change.Resource.Resource+"/"+change.Name, "/"))
		}
		if err := l.change(ctx, change, at); err != nil && !apierrors.IsNotFound(err) {
			return moved, err
		}
	}
	if len(changes) > 0 {
		l.since = changes[len(changes)-1].Revision
	}
	if len(last) > 0 {
		l.last = last
	}
	l.outages(at)
	return moved, nil
}

// news are the changes that are looked at: the first of an object, which is read as it is now, and its end, after which another may
// have its name.
func news(changes []setpoint.Change) (all []setpoint.Change) {
	seen := map[string]bool{}
	for _, change := range changes {
		key := change.Resource.String() + "/" + change.Namespace + "/" + change.Name
		if heartbeats[change.Resource.Resource] || isItsOwn(change) || seen[key] && change.Verb != "delete" {
			continue
		}
		seen[key] = change.Verb != "delete"
		all = append(all, change)
	}
	return all
}

// heartbeats are kinds whose changes are no news.
var heartbeats = map[string]bool{"leases": true, "apiservices": true, "flowschemas": true, "prioritylevelconfigurations": true}

// isItsOwn tells that a change says who the fork's server is, another one than the copied: Secrets that it writes again with its own key,
// and where its authority is told. It does so when it comes to it, whatever is asked.
func isItsOwn(c setpoint.Change) bool {
	switch c.Resource.String() {
	case "secrets":
		return c.Verb == "update" && c.User == inprocess.Server.GetName()
	case "configmaps":
		return c.Name == "kube-root-ca.crt" || c.Namespace == metav1.NamespaceSystem && c.Name == "extension-apiserver-authentication"
	case "clustertrustbundles.certificates.k8s.io":
		return strings.HasPrefix(c.Name, "kubernetes.io:kube-apiserver-serving:")
	}
	return false
}

func (l *ledger) change(ctx context.Context, c setpoint.Change, at time.Duration) error {
	get := metav1.GetOptions{}
	deleted := c.Verb == "delete"
	switch c.Resource.String() {
	case "pods":
		if deleted {
			l.ended(types.UID(c.UID), at)
			return nil
		}
		pod, err := l.fork.client.CoreV1().Pods(c.Namespace).Get(ctx, c.Name, get)
		if err == nil {
			l.pod(pod, at)
		}
		return err
	case "replicasets.apps":
		set, err := l.fork.client.AppsV1().ReplicaSets(c.Namespace).Get(ctx, c.Name, get)
		if owner := metav1.GetControllerOf(set); err == nil && owner != nil {
			l.owners[set.UID] = strings.ToLower(owner.Kind) + "/" + owner.Name
		}
		return err
	case "endpointslices.discovery.k8s.io":
		slice, err := l.fork.client.DiscoveryV1().EndpointSlices(c.Namespace).Get(ctx, c.Name, get)
		if apierrors.IsNotFound(err) {
			l.noSlice(c.Namespace, c.Name)
		} else if err == nil {
			l.slice(slice)
		}
		return err
	}
	return l.other(ctx, c, at)
}

func (l *ledger) other(ctx context.Context, c setpoint.Change, at time.Duration) error {
	get := metav1.GetOptions{}
	switch c.Resource.String() {
	case "nodes":
		node, err := l.fork.client.CoreV1().Nodes().Get(ctx, c.Name, get)
		if err == nil {
			l.node(node, at)
		}
		return err
	case "poddisruptionbudgets.policy":
		budget, err := l.fork.client.PolicyV1().PodDisruptionBudgets(c.Namespace).Get(ctx, c.Name, get)
		if err == nil {
			l.budget(budget, at)
		}
		return err
	case "events", "events.events.k8s.io":
		event, err := l.fork.client.CoreV1().Events(c.Namespace).Get(ctx, c.Name, get)
		if err == nil {
			l.event(event, at)
		}
		return err
	}
	return nil
}

// say notes what happens; the same of several objects in one step is one event.
func (l *ledger) say(at time.Duration, format string, args ...any) {
	if !l.recording {
		return
	}
	what, events := fmt.Sprintf(format, args...), l.answer.Events
	for i := len(events) - 1; i >= 0 && events[i].At == Duration(at); i-- {
		if events[i].What == what {
			events[i].Count++
			return
		}
	}
	l.answer.Events = append(events, Event{At: Duration(at), Count: 1, What: what})
}

// owner is what stands behind a pod.
func (l *ledger) owner(pod *corev1.Pod) string {
	owner := metav1.GetControllerOf(pod)
	switch {
	case owner == nil:
		return "pod/" + pod.Name
	case l.owners[owner.UID] != "":
		return l.owners[owner.UID]
	}
	return strings.ToLower(owner.Kind) + "/" + owner.Name
}

func (l *ledger) pod(pod *corev1.Pod, at time.Duration) {
	before := l.pods[pod.UID]
	l.pods[pod.UID] = pod
	of := l.owner(pod) + " in " + pod.Namespace
	if before == nil {
		l.say(at, "a pod of %s is made", of)
		before = &corev1.Pod{}
	}
	if before.Spec.NodeName == "" && pod.Spec.NodeName != "" {
		l.say(at, "a pod of %s goes to %s", of, pod.Spec.NodeName)
	}
	switch was, is := isReady(before), isReady(pod); {
	case !was && is:
		l.say(at, "a pod of %s is ready", of)
	case was && !is:
		l.say(at, "a pod of %s on %s is no longer ready", of, pod.Spec.NodeName)
	}
	if pod.DeletionTimestamp != nil && before.DeletionTimestamp == nil {
		l.say(at, "a pod of %s on %s is told to end", of, pod.Spec.NodeName)
	}
}

func (l *ledger) ended(uid types.UID, at time.Duration) {
	if pod := l.pods[uid]; pod != nil {
		l.say(at, "a pod of %s in %s has ended on %s", l.owner(pod), pod.Namespace, pod.Spec.NodeName)
		delete(l.pods, uid)
	}
}

func isReady(pod *corev1.Pod) bool {
	c := condition(pod, corev1.PodReady)
	return c != nil && c.Status == corev1.ConditionTrue && pod.DeletionTimestamp == nil
}

// stateOf is what is the matter with a node.
func stateOf(node *corev1.Node) string {
	state := "is Ready"
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
			state = "is not Ready"
		}
	}
	for _, taint := range node.Spec.Taints {
		if taint.Effect == corev1.TaintEffectNoExecute {
			state += ", with the taint " + taint.Key
		}
	}
	if node.Spec.Unschedulable {
		state += ", cordoned"
	}
	return state
}

func (l *ledger) node(node *corev1.Node, at time.Duration) {
	l.taints[node.Name] = node.Spec.Taints
	if state := stateOf(node); state != l.nodes[node.Name] {
		l.nodes[node.Name] = state
		l.say(at, "node/%s %s", node.Name, state)
	}
}

// slice counts the ready endpoints of a Service.
func (l *ledger) slice(slice *discoveryv1.EndpointSlice) {
	name := slice.Labels[discoveryv1.LabelServiceName]
	if name == "" || slice.Namespace == metav1.NamespaceDefault && name == "kubernetes" { // the fork has a server of its own
		return
	}
	ready := 0
	for i := range slice.Endpoints {
		if on := slice.Endpoints[i].Conditions.Ready; on == nil || *on {
			ready++
		}
	}
	service := slice.Namespace + "/" + name
	if l.ready[service] == nil {
		l.ready[service] = map[string]int{}
	}
	l.ready[service][slice.Name] = ready
}

// noSlice takes away a slice of any Service.
func (l *ledger) noSlice(namespace, name string) {
	for service, parts := range l.ready {
		if _, has := parts[name]; has && strings.HasPrefix(service, namespace+"/") {
			delete(parts, name)
		}
	}
}

func sum(of map[string]int) (all int) {
	for _, n := range of {
		all += n
	}
	return all
}

// outages notes which Services have lost their last ready endpoint by the end of a step, and which have one again.
func (l *ledger) outages(at time.Duration) {
	for _, service := range slices.Sorted(maps.Keys(l.ready)) {
		had, has := l.had[service], sum(l.ready[service])
		l.had[service] = has
		since, isDown := l.down[service]
		switch {
		case !l.recording:
		case had > 0 && has == 0:
			l.down[service] = at
			l.say(at, "service/%s has no ready endpoint", service)
		case isDown && has > 0:
			delete(l.down, service)
			l.say(at, "service/%s has ready endpoints again", service)
			l.answer.Services = append(l.answer.Services, l.outage(service, since, at, false))
		}
	}
}

func (l *ledger) outage(service string, since, until time.Duration, lasts bool) Service {
	namespace, name, _ := strings.Cut(service, "/")
	return Service{Namespace: namespace, Name: name, From: Duration(since), For: Duration(until - since), Lasts: lasts}
}

func (l *ledger) budgetOf(namespace, name string) *budget {
	b := l.budgets[namespace+"/"+name]
	if b == nil {
		b = &budget{Budget: Budget{Namespace: namespace, Name: name}}
		l.budgets[namespace+"/"+name] = b
	}
	return b
}

func (l *ledger) budget(pdb *policyv1.PodDisruptionBudget, at time.Duration) {
	b, broken := l.budgetOf(pdb.Namespace, pdb.Name), pdb.Status.CurrentHealthy < pdb.Status.DesiredHealthy
	was := b.broken
	b.broken = broken
	switch {
	case !l.recording:
		b.before = broken // which is not because of the act
	case broken && !was:
		b.since = at
		l.say(at, "the budget %s in %s is not kept: %d of %d pods are healthy", pdb.Name, pdb.Namespace,
			pdb.Status.CurrentHealthy, pdb.Status.DesiredHealthy)
	case was && !broken && !b.before:
		b.Broken += Duration(at - b.since)
	case was && !broken:
		b.before = false
	}
}

// refused notes an eviction that a budget has refused.
func (l *ledger) refused(at time.Duration, pod *corev1.Pod, said string) {
	name := ""
	if _, after, found := strings.Cut(said, "disruption budget "); found {
		name, _, _ = strings.Cut(after, " ")
	}
	b := l.budgetOf(pod.Namespace, cmp.Or(name, "pod/"+pod.Name))
	if b.Refused++; b.Refused == 1 {
		l.say(at, "the eviction of a pod of %s is refused: %s", l.owner(pod), said)
	}
	b.Said = said
}

// event notes what admission refuses to controllers.
func (l *ledger) event(event *corev1.Event, at time.Duration) {
	if event.Reason != "FailedCreate" || !l.recording {
		return
	}
	object := strings.ToLower(event.InvolvedObject.Kind) + "/" + event.InvolvedObject.Name
	if owner := l.owners[event.InvolvedObject.UID]; owner != "" {
		object = owner
	}
	l.denied(event.Namespace, object, event.Message, at)
}

// denied notes that pods of an object are refused.
func (l *ledger) denied(namespace, object, message string, at time.Duration) {
	list, who := &l.answer.Refused, "admission"
	_, said, quota := strings.Cut(message, "exceeded quota: ")
	switch {
	case quota:
		list, who = &l.answer.Quotas, "a quota"
	default:
		said = message
		if _, why, found := strings.Cut(message, " is forbidden: "); found {
			said = why
		}
	}
	for _, q := range *list {
		if q.Namespace == namespace && q.Object == object {
			return
		}
	}
	*list = append(*list, Quota{Namespace: namespace, Object: object, Said: said, At: Duration(at)})
	l.say(at, "%s refuses a pod of %s in %s: %s", who, object, namespace, said)
}

// short notes what is refused to ReplicaSets in the end: of many Events of one object some are not written.
func (l *ledger) short(ctx context.Context, at time.Duration) error {
	sets, err := l.fork.client.AppsV1().ReplicaSets("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range sets.Items {
		set := &sets.Items[i]
		for _, c := range set.Status.Conditions {
			if c.Type == appsv1.ReplicaSetReplicaFailure && c.Status == corev1.ConditionTrue {
				l.denied(set.Namespace, cmp.Or(l.owners[set.UID], "replicaset/"+set.Name), c.Message, at)
			}
		}
	}
	return nil
}
