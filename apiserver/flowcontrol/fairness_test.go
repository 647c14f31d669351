package flowcontrol

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/apis/flowcontrol/bootstrap"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
)

// whole is upstream's configuration, each object with a uid of its own.
func whole() ([]*flowcontrolv1.FlowSchema, []*flowcontrolv1.PriorityLevelConfiguration) {
	var schemas []*flowcontrolv1.FlowSchema
	for _, list := range [][]*flowcontrolv1.FlowSchema{bootstrap.MandatoryFlowSchemas, bootstrap.SuggestedFlowSchemas} {
		for _, s := range list {
			s = s.DeepCopy()
			s.UID = types.UID("schema-" + s.Name)
			schemas = append(schemas, s)
		}
	}
	var levels []*flowcontrolv1.PriorityLevelConfiguration
	for _, list := range [][]*flowcontrolv1.PriorityLevelConfiguration{bootstrap.MandatoryPriorityLevelConfigurations, bootstrap.SuggestedPriorityLevelConfigurations} {
		for _, l := range list {
			l = l.DeepCopy()
			l.UID = types.UID("level-" + l.Name)
			levels = append(levels, l)
		}
	}
	return schemas, levels
}

func person(name string, groups ...string) user.Info {
	return &user.DefaultInfo{Name: name, Groups: append(groups, user.AllAuthenticated)}
}

var (
	account   = person("system:serviceaccount:shop:web", "system:serviceaccounts", "system:serviceaccounts:shop")
	collector = person("system:serviceaccount:kube-system:generic-garbage-collector", "system:serviceaccounts", "system:serviceaccounts:kube-system")
	stranger  = &user.DefaultInfo{Name: user.Anonymous, Groups: []string{user.AllUnauthenticated}}
)

func resource(verb, group, resource, namespace string) *request.RequestInfo {
	return &request.RequestInfo{IsResourceRequest: true, Verb: verb, APIGroup: group, Resource: resource, Namespace: namespace, Name: "a"}
}

func TestClassify(t *testing.T) {
	p := newPlan(nil, nil, nil)
	if s := p.classify(person("jane"), resource("get", "", "pods", "a")); s.Name != "catch-all" {
		t.Errorf("before anything is known: %s", s.Name)
	}
	p = newPlan(p, first(whole()), second(whole()))
	for name, c := range map[string]struct {
		who                 user.Info
		info                *request.RequestInfo
		schema, level, flow string
	}{
		"administrator":  {person("admin", user.SystemPrivilegedGroup), resource("list", "", "pods", ""), "exempt", "exempt", ""},
		"health":         {stranger, &request.RequestInfo{Verb: "get", Path: "/readyz"}, "probes", "exempt", ""},
		"a stranger":     {stranger, resource("get", "", "pods", "a"), "global-default", "global-default", user.Anonymous},
		"a node's lease": {person("system:node:a", user.NodesGroup), resource("update", "coordination.k8s.io", "leases", "kube-node-lease"), "system-node-high", "node-high", "system:node:a"},
		"a node's other": {person("system:node:a", user.NodesGroup), resource("get", "", "secrets", "a"), "system-nodes", "system", "system:node:a"},
		"kube-system":    {collector, resource("list", "", "pods", ""), "kube-system-service-accounts", "workload-high", "kube-system"},
		"an account":     {account, resource("list", "", "pods", ""), "service-accounts", "workload-low", account.GetName()},
		"a person":       {person("jane"), resource("create", "apps", "deployments", "shop"), "global-default", "global-default", "jane"},
		"discovery":      {person("jane"), &request.RequestInfo{Verb: "get", Path: "/apis"}, "global-default", "global-default", "jane"},
		"nobody at all":  {&user.DefaultInfo{Name: "x"}, resource("get", "", "pods", "a"), "catch-all", "catch-all", "x"},
	} {
		t.Run(name, func(t *testing.T) {
			s := p.classify(c.who, c.info)
			if s.level.name != c.level || s.Name != c.schema && c.schema != "kube-system-service-accounts" {
				t.Errorf("%s, %s; want %s, %s", s.Name, s.level.name, c.schema, c.level)
			}
		})
	}
}

func first[A, B any](a A, _ B) A  { return a }
func second[A, B any](_ A, b B) B { return b }

func TestMatching(t *testing.T) {
	rule := flowcontrolv1.ResourcePolicyRule{Verbs: []string{"get"}, APIGroups: []string{"apps"}, Resources: []string{"deployments", "deployments/scale"}, Namespaces: []string{"a"}}
	cluster := rule
	cluster.Namespaces, cluster.ClusterScope = nil, true
	scale := resource("get", "apps", "deployments", "a")
	scale.Subresource = "scale"
	for name, c := range map[string]struct {
		rule flowcontrolv1.ResourcePolicyRule
		info *request.RequestInfo
		want bool
	}{
		"all fits":        {rule, resource("get", "apps", "deployments", "a"), true},
		"a part":          {rule, scale, true},
		"another verb":    {rule, resource("list", "apps", "deployments", "a"), false},
		"another group":   {rule, resource("get", "", "deployments", "a"), false},
		"elsewhere":       {rule, resource("get", "apps", "deployments", "b"), false},
		"all namespaces":  {rule, resource("get", "apps", "deployments", ""), false},
		"the cluster's":   {cluster, resource("get", "apps", "deployments", ""), true},
		"not a namespace": {cluster, resource("get", "apps", "deployments", "a"), false},
	} {
		if got := concernsResource(&c.rule, c.info); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	for path, want := range map[string]bool{"/healthz": true, "/healthz/x": false, "/logs/a": true, "/log": false} {
		if got := hasPath([]string{"/healthz", "/logs/*"}, path); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
}

func TestSeats(t *testing.T) {
	p := newPlan(nil, first(whole()), second(whole()))
	for name, want := range map[string]int{"exempt": 0, "catch-all": 13, "global-default": 49, "workload-low": 245, "node-high": 98} {
		if got := p.levels[name].seats; got != want {
			t.Errorf("%s: %d seats, want %d", name, got, want)
		}
	}
}

// world is a handler behind a Fairness with one level of two seats for everybody, where
// every request executes until it is told to end.
type world struct {
	t       *testing.T
	f       *Fairness
	handler http.Handler

	mu        sync.Mutex
	executing []*asked
}

type asked struct {
	who  string
	end  chan struct{}
	w    *httptest.ResponseRecorder
	done bool
}

func newWorld(t *testing.T, response flowcontrolv1.LimitResponse) *world {
	w := &world{t: t, f: New(nil)}
	level := &flowcontrolv1.PriorityLevelConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "narrow", UID: "narrow-uid"}}
	level.Spec.Type = flowcontrolv1.PriorityLevelEnablementLimited
	level.Spec.Limited = &flowcontrolv1.LimitedPriorityLevelConfiguration{NominalConcurrencyShares: new(int32(1)), LimitResponse: response}
	rest := level.DeepCopy() // which has nearly all the shares, so that two seats are left
	rest.Name = "rest"
	rest.Spec.Limited.NominalConcurrencyShares = new(int32(concurrencyLimit/2 - 6))
	schema := &flowcontrolv1.FlowSchema{ObjectMeta: metav1.ObjectMeta{Name: "all", UID: "all-uid"}}
	schema.Spec = flowcontrolv1.FlowSchemaSpec{
		PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: "narrow"}, MatchingPrecedence: 100,
		DistinguisherMethod: &flowcontrolv1.FlowDistinguisherMethod{Type: flowcontrolv1.FlowDistinguisherMethodByUserType},
		Rules: []flowcontrolv1.PolicyRulesWithSubjects{{
			Subjects:      []flowcontrolv1.Subject{{Kind: "Group", Group: &flowcontrolv1.GroupSubject{Name: user.AllAuthenticated}}},
			ResourceRules: []flowcontrolv1.ResourcePolicyRule{{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}, Namespaces: []string{"*"}, ClusterScope: true}},
		}},
	}
	w.f.change(func() {
		w.f.levels["narrow"], w.f.levels["rest"], w.f.schemas["all"] = level, rest, schema
	})
	if seats := w.f.plan.Load().levels["narrow"].seats; seats != 2 {
		t.Fatalf("%d seats", seats)
	}
	w.handler = w.f.Handler(http.HandlerFunc(w.execute), func(*http.Request, *request.RequestInfo) bool { return false })
	return w
}

func queuing(length int32) flowcontrolv1.LimitResponse {
	return flowcontrolv1.LimitResponse{Type: flowcontrolv1.LimitResponseTypeQueue, Queuing: &flowcontrolv1.QueuingConfiguration{Queues: 4, HandSize: 1, QueueLengthLimit: length}}
}

type askedKey struct{}

func (w *world) execute(_ http.ResponseWriter, r *http.Request) {
	a := r.Context().Value(askedKey{}).(*asked)
	w.mu.Lock()
	w.executing = append(w.executing, a)
	w.mu.Unlock()
	if info, _ := request.RequestInfoFrom(r.Context()); info.Verb == "watch" {
		WatchBegun(r.Context())
	}
	<-a.end
}

// ask sends a request and returns when it executes, waits, or was refused.
func (w *world) ask(who, verb string) *asked { return w.askFor(who, resource(verb, "", "pods", "a")) }

// askAll lists everything.
func (w *world) askAll(who string) *asked {
	info := resource("list", "", "pods", "a")
	info.Name = ""
	return w.askFor(who, info)
}

func (w *world) askFor(who string, info *request.RequestInfo) *asked {
	a := &asked{who: who, end: make(chan struct{}), w: httptest.NewRecorder()}
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	ctx = request.WithUser(context.WithValue(ctx, askedKey{}, a), person(who))
	ctx = request.WithRequestInfo(ctx, info)
	go func() {
		defer cancel()
		w.handler.ServeHTTP(a.w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil))
		a.done = true
	}()
	synctest.Wait()
	return a
}

// order is who executes, in the order in which they began.
func (w *world) order() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var names []string
	for _, a := range w.executing {
		names = append(names, a.who)
	}
	return strings.Join(names, " ")
}

// endFirst ends the request that executes longest.
func (w *world) endFirst() {
	w.mu.Lock()
	a := w.executing[0]
	w.executing = w.executing[1:]
	w.mu.Unlock()
	close(a.end)
	synctest.Wait()
}

func (w *world) endAll() {
	for len(w.executing) > 0 {
		w.endFirst()
	}
}

// TestAGreedyClientWaitsForItself: whoever comes later, with one request, goes first.
func TestAGreedyClientWaitsForItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, queuing(20))
		for range 10 {
			w.ask("greedy", "list")
		}
		jane := w.ask("jane", "get")
		joe := w.ask("joe", "get")
		if got := w.order(); got != "greedy greedy" {
			t.Fatalf("executing: %s", got)
		}
		w.endFirst()
		if got := w.order(); got != "greedy jane" {
			t.Errorf("after one: %s", got)
		}
		w.endFirst() // now none of the greedy client's executes, and it has waited longest
		if got := w.order(); got != "jane greedy" {
			t.Errorf("after two: %s", got)
		}
		w.endFirst()
		if got := w.order(); got != "greedy joe" {
			t.Errorf("after three: %s", got)
		}
		if uid := jane.w.Header()[levelHeader]; len(uid) != 1 || uid[0] != "narrow-uid" || joe.w.Header()[schemaHeader][0] != "all-uid" {
			t.Errorf("headers: %v", jane.w.Header())
		}
		w.endAll()
	})
}

func TestAFullQueueRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, queuing(3))
		for range 5 {
			w.ask("greedy", "get")
		}
		refused := w.ask("greedy", "get")
		if !refused.done || refused.w.Code != http.StatusTooManyRequests || refused.w.Header().Get("Retry-After") != "1" {
			t.Errorf("%d %v", refused.w.Code, refused.w.Header())
		}
		if jane := w.ask("jane", "get"); jane.done {
			t.Errorf("jane, whose queue is empty: %d", jane.w.Code)
		}
		w.endAll()
	})
}

func TestALevelThatRejects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, flowcontrolv1.LimitResponse{Type: flowcontrolv1.LimitResponseTypeReject})
		w.ask("a", "get")
		w.ask("b", "get")
		if c := w.ask("c", "get"); c.w.Code != http.StatusTooManyRequests {
			t.Errorf("%d", c.w.Code)
		}
		w.endAll()
		if c := w.ask("c", "get"); c.done {
			t.Errorf("afterwards: %d", c.w.Code)
		}
		w.endAll()
	})
}

// TestPatienceEnds at a quarter of the request's time, and its place is free again.
func TestPatienceEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, queuing(1))
		w.ask("a", "get")
		w.ask("a", "get")
		start, late := time.Now(), w.ask("b", "get")
		time.Sleep(time.Minute / patience)
		synctest.Wait()
		if !late.done || late.w.Code != http.StatusTooManyRequests {
			t.Fatalf("after %v: %d", time.Since(start), late.w.Code)
		}
		if again := w.ask("b", "get"); again.done {
			t.Errorf("its place is taken still: %d", again.w.Code)
		}
		w.endAll()
		if l := w.f.plan.Load().levels["narrow"]; l.executing != 0 || l.waiting != 0 || len(l.flows) != 0 {
			t.Errorf("left behind: %d executing, %d waiting, %d flows", l.executing, l.waiting, len(l.flows))
		}
	})
}

// TestWatchesCountWhileTheyBegin and not afterwards, nor when they end.
func TestWatchesCountWhileTheyBegin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, queuing(1))
		for range 5 {
			w.ask("a", "watch")
		}
		w.ask("a", "get")
		w.ask("a", "get")
		if got := strings.Count(w.order(), "a"); got != 7 {
			t.Fatalf("%d go on", got)
		}
		w.endAll()
		if l := w.f.plan.Load().levels["narrow"]; l.executing != 0 {
			t.Errorf("%d execute", l.executing)
		}
	})
}

// TestMoreSeatsLetWaitersGo: an administrator widens a level that is full.
func TestMoreSeatsLetWaitersGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, queuing(4))
		for range 4 {
			w.ask("a", "get")
		}
		w.f.change(func() {
			wider := w.f.levels["narrow"].DeepCopy()
			*wider.Spec.Limited.NominalConcurrencyShares = 2
			w.f.levels["narrow"] = wider
		})
		synctest.Wait()
		if got := w.order(); got != "a a a a" {
			t.Errorf("executing: %s", got)
		}
		w.endAll()
	})
}

func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		schemas, levels := whole()
		client := fake.NewClientset()
		for _, l := range levels {
			_ = client.Tracker().Add(l)
		}
		for _, s := range schemas {
			_ = client.Tracker().Add(s)
		}
		factory := informers.NewSharedInformerFactory(client, 0)
		f := New(nil)
		if err := f.Follow(factory); err != nil {
			t.Fatal(err)
		}
		factory.StartWithContext(t.Context())
		synctest.Wait()
		if s := f.plan.Load().classify(person("jane"), resource("get", "", "pods", "a")); s.uid[0] != "schema-global-default" || s.levelUID[0] != "level-global-default" {
			t.Errorf("%v %v", s.uid, s.levelUID)
		}
		if err := client.FlowcontrolV1().PriorityLevelConfigurations().Delete(t.Context(), "global-default", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if s := f.plan.Load().classify(person("jane"), resource("get", "", "pods", "a")); s.Name != "catch-all" {
			t.Errorf("without its level a schema stays: %s", s.Name)
		}
	})
}

func BenchmarkHandler(b *testing.B) {
	f := New(nil)
	f.plan.Store(newPlan(nil, first(whole()), second(whole())))
	h := f.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), func(*http.Request, *request.RequestInfo) bool { return false })
	for name, who := range map[string]user.Info{"admin": person("admin", user.SystemPrivilegedGroup), "account": account} {
		b.Run(name, func(b *testing.B) {
			ctx := request.WithUser(b.Context(), who)
			ctx = request.WithRequestInfo(ctx, resource("get", "", "configmaps", "a"))
			r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil)
			w := httptest.NewRecorder()
			b.ReportAllocs()
			for b.Loop() {
				h.ServeHTTP(w, r)
			}
		})
	}
}

func TestDocuments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, queuing(3))
		for range 3 {
			w.ask("a", "get")
		}
		for path, want := range map[string]string{
			"dump_priority_levels": "narrow, 1, 1, 2, 2, 0, 0, 2\n",
			"dump_queues":          "narrow, all, a, 1, 2\n",
			"dump_requests":        "narrow, all, a, 0, 3\n",
		} {
			got := httptest.NewRecorder()
			w.f.Documents()[debugPath+path].ServeHTTP(got, httptest.NewRequest(http.MethodGet, "/", nil))
			if !strings.Contains(got.Body.String(), want) {
				t.Errorf("%s:\n%s", path, got.Body)
			}
		}
		registry := prometheus.NewPedanticRegistry()
		registry.MustRegister(w.f)
		want := "# HELP apiserver_flowcontrol_current_inqueue_requests Requests that wait now.\n# TYPE apiserver_flowcontrol_current_inqueue_requests gauge\n" +
			"apiserver_flowcontrol_current_inqueue_requests{priority_level=\"catch-all\"} 0\napiserver_flowcontrol_current_inqueue_requests{priority_level=\"exempt\"} 0\n" +
			"apiserver_flowcontrol_current_inqueue_requests{priority_level=\"narrow\"} 1\napiserver_flowcontrol_current_inqueue_requests{priority_level=\"rest\"} 0\n"
		if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "apiserver_flowcontrol_current_inqueue_requests"); err != nil {
			t.Error(err)
		}
		w.endAll()
	})
}
