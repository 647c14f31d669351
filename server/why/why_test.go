package why

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/setpoint-io/setpoint/apiserver/kinds"
	rest "github.com/setpoint-io/setpoint/apiserver/resource"
	"github.com/setpoint-io/setpoint/apiserver/storage"
	"github.com/setpoint-io/setpoint/controllers/reconcile/numbers"
	"github.com/setpoint-io/setpoint/raftstore/raftstoretest"
	"github.com/setpoint-io/setpoint/raftstore/state"
	"github.com/setpoint-io/setpoint/server/caches"
)

var (
	errNoLeader = errors.New("no leader")
	admin       = &user.DefaultInfo{Name: "admin"}
	reader      = &user.DefaultInfo{Name: "reader"}
)

// may lets the administrator get everything, and the reader pods and maps.
func may(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	readable := a.GetResource() == "pods" || a.GetResource() == "configmaps"
	if a.GetVerb() == "get" && a.IsResourceRequest() && (a.GetUser().GetName() == "admin" || readable && a.GetNamespace() == "n") {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

// newWorld answers over storage in memory. loops is what the leader says.
func newWorld(tb testing.TB, loops func(context.Context) ([]numbers.Report, error)) (*Why, *storage.Store) {
	tb.Helper()
	store := storage.New(raftstoretest.NewLocal(state.Options{}), kinds.NewScheme(), kinds.All())
	held, err := caches.New(fake.NewSimpleClientset(), store, caches.Reads(store.Serves), slog.New(slog.DiscardHandler))
	if err != nil {
		tb.Fatal(err)
	}
	return New(Config{
		Storage: store, Caches: held, Loops: loops, Authorizer: authorizer.AuthorizerFunc(may),
		CustomKinds: func(context.Context) ([]*rest.Any, error) { return nil, nil },
		Custom:      func(context.Context) (map[schema.GroupVersionResource]*storage.Table, error) { return nil, nil },
	}), store
}

func noLeader(context.Context) ([]numbers.Report, error) { return nil, errNoLeader }

func write(tb testing.TB, store *storage.Store, plural string, o rest.Object) {
	tb.Helper()
	o.SetUID(types.UID(plural + o.GetName()))
	_, err := store.Table(corev1.SchemeGroupVersion.WithResource(plural)).Write(tb.Context(), o.GetNamespace(), o.GetName(),
		func(*storage.View) (*storage.Change, error) { return &storage.Change{Object: o}, nil })
	if err != nil {
		tb.Fatal(err)
	}
}

func aNode(name, cpu string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourcePods: resource.MustParse("110"),
	}}}
}

func aPod(name, node, cpu string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name}, Spec: corev1.PodSpec{
		NodeName: node, Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse(cpu),
		}}}},
	}}
}

// TestTheSchedulersOwnVerdicts: what the plugins say over the server's caches is in the answer, node by node; and of a caller who
// may not get nodes, none of it.
func TestTheSchedulersOwnVerdicts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y, store := newWorld(t, noLeader)
		ctx, cancel := context.WithCancel(t.Context())
		y.config.Caches.StartWithContext(ctx)
		defer y.config.Caches.Shutdown()
		defer cancel()
		cordoned := aNode("b", "9")
		cordoned.Spec.Unschedulable = true
		write(t, store, "nodes", aNode("a", "2"))
		write(t, store, "nodes", cordoned)
		write(t, store, "pods", aPod("runs", "a", "1500m"))
		write(t, store, "pods", aPod("waits", "", "1"))
		if err := y.config.Caches.CatchUp(ctx); err != nil {
			t.Fatal(err)
		}
		question := Question{Kind: "po", Namespace: "n", Name: "waits"}
		answer, err := y.Answer(ctx, admin, question)
		if err != nil {
			t.Fatal(err)
		}
		var said []string
		for _, node := range answer.Nodes {
			for _, r := range node.Refusals {
				said = append(said, node.Name+" "+r.Plugin+" "+strings.Join(r.Remedies, ","))
			}
		}
		want := []string{"a NodeResourcesFit 500m cpu were freed", "b NodeUnschedulable it were uncordoned"}
		if !slices.Equal(said, want) || !answer.Held || answer.Object.String() != "Pod/waits" {
			t.Errorf("%q\n%+v", said, answer)
		}
		answer, err = y.Answer(ctx, reader, question)
		if err != nil || len(answer.Nodes) > 0 || len(answer.Causes) != 1 || answer.Causes[0].Object.Name != "" {
			t.Errorf("the reader: %v %+v", err, answer)
		}
	})
}

// TestWhoMayAsk: the object decides; who may not get it does not learn whether it is there.
func TestWhoMayAsk(t *testing.T) {
	y, store := newWorld(t, noLeader)
	write(t, store, "secrets", &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "s"}})
	cases := []struct {
		by   user.Info
		q    Question
		want func(error) bool
	}{
		{admin, Question{"secrets", "n", "s"}, func(err error) bool { return err == nil }},
		{admin, Question{"Secret", "n", "none"}, apierrors.IsNotFound},
		{admin, Question{"wheel", "n", "s"}, apierrors.IsBadRequest},
		{admin, Question{"secrets.apps", "n", "s"}, apierrors.IsBadRequest},
		{admin, Question{"deployments.apps", "n", "d"}, apierrors.IsNotFound},
		{reader, Question{"secret", "n", "s"}, apierrors.IsForbidden},
		{reader, Question{"secret", "n", "none"}, apierrors.IsForbidden},
		{reader, Question{"pod", "other", "p"}, apierrors.IsForbidden},
		{reader, Question{"pod", "n", "p"}, apierrors.IsNotFound},
		{reader, Question{"ns", "n", "n"}, apierrors.IsForbidden},
	}
	for _, c := range cases {
		if _, err := y.Answer(t.Context(), c.by, c.q); !c.want(err) {
			t.Errorf("%s asks for %+v: %v", c.by.GetName(), c.q, err)
		}
	}
}

// TestLoopsErrors: of all failing keys those of the object's own loops are told; another kind's object of the same name is innocent.
func TestLoopsErrors(t *testing.T) {
	failing := func(queue, text string) numbers.Report {
		return numbers.Report{Loop: queue + "-controller", Queue: queue, Failing: []numbers.FailingKey{{Key: "n/web", Error: text}, {Key: "n/other", Error: "other"}}}
	}
	y, store := newWorld(t, func(context.Context) ([]numbers.Report, error) {
		return []numbers.Report{failing("replicaset", "theirs"), failing("endpoint_slice", "mine"), failing("service", "no address")}, nil
	})
	write(t, store, "services", &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "web"}})
	answer, err := y.Answer(t.Context(), admin, Question{"svc", "n", "web"})
	if err != nil || len(answer.Causes) != 2 || answer.Causes[0].What != "the loop endpoint_slice-controller fails: mine" ||
		answer.Causes[1].What != "the loop service-controller fails: no address" {
		t.Errorf("%v %+v", err, answer)
	}
}

// TestQueuesAreThoseOfLoops: a name that no loop has would find nothing, and nobody would notice.
func TestQueuesAreThoseOfLoops(t *testing.T) {
	named := regexp.MustCompile(`(?:Queue|Name):\s+"(\w+)"|queueName = "(\w+)"`)
	known := map[string]bool{}
	err := filepath.WalkDir(filepath.Join("..", "..", "controllers"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, found := range named.FindAllStringSubmatch(string(text), -1) {
			known[found[1]+found[2]] = true
		}
		return err
	})
	if err != nil || !known["deployment"] {
		t.Fatalf("the loops were not found: %v", err)
	}
	for kind, names := range queues {
		for _, name := range names {
			if !known[name] {
				t.Errorf("%s: no loop has the queue %q", kind, name)
			}
		}
	}
}

// keysOfNoKind are queues whose keys are not the names of objects of one kind, and what they are.
var keysOfNoKind = map[string]string{
	"bootstrap_signer_queue":              "the one ConfigMap",
	"certificatecleaner":                  "all requests at once",
	"clusterobjects":                      "all objects at once",
	"dnsservice":                          "the one Service",
	"eventttl":                            "all events at once",
	"garbage_collector_attempt_to_delete": "objects of any kind",
	"gateway":                             "all Gateways at once",
	"ipaddresses":                         "Services and addresses",
	"kubernetesservice":                   "the one Service",
	"legacytokencleaner":                  "all tokens at once",
	"local_volume_objects":                "the class and the driver",
	"orphaned_pods_nodes":                 "all pods at once",
	"podcertificatecleaner":               "all requests at once",
	"resource_claim":                      "claims and pods",
	"serverpods":                          "all servers at once",
	"trustbundle":                         "the one bundle",
}

// TestEveryQueueHasItsKind: what a loop says of an object in its queue would be told to nobody who asks about the object.
func TestEveryQueueHasItsKind(t *testing.T) {
	told := map[string]bool{}
	for _, names := range queues {
		for _, name := range names {
			told[name] = true
		}
	}
	for _, kind := range kinds.All() {
		if _, otherwise := queues[kind.GroupVersionKind.Kind]; !otherwise {
			told[strings.ToLower(kind.GroupVersionKind.Kind)] = true
		}
	}
	used := map[string]bool{}
	for _, queue := range queuesOfLoops(t) {
		if told[queue] {
			continue
		}
		if used[queue] = true; keysOfNoKind[queue] == "" {
			t.Errorf("the queue %s: name it in queues (world.go), with the kind whose objects are its keys, or say in keysOfNoKind what they are", queue)
		}
	}
	for queue := range keysOfNoKind {
		if !used[queue] {
			t.Errorf("keysOfNoKind names %s, which no loop has, or which is in queues", queue)
		}
	}
}

// loopConfig is a literal with a loop's name in logs and, if it is another, in reports.
var loopConfig = regexp.MustCompile(`\bName:\s+"(\w+)(?: \w+)?",\s*(?:Queue:\s+"(\w+)",\s*)?Reconcile:`)

// queuesOfLoops are the names under which the loops report failing keys. Two have theirs from a variable.
func queuesOfLoops(t *testing.T) (names []string) {
	t.Helper()
	collect := func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "reconciletest") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, found := range loopConfig.FindAllStringSubmatch(string(text), -1) {
			names = append(names, cmp.Or(found[2], found[1]))
		}
		return err
	}
	// Some loops are the server's own.
	err := errors.Join(filepath.WalkDir(filepath.Join("..", "..", "controllers"), collect), filepath.WalkDir("..", collect))
	if err != nil || len(names) < 40 {
		t.Fatalf("the loops were not found: %v (%v)", names, err)
	}
	return names
}

// TestWhatIsLeft: a namespace that is being deleted is held by what has a finalizer, of any kind, and by nothing else in it.
func TestWhatIsLeft(t *testing.T) {
	y, store := newWorld(t, noLeader)
	at := metav1.Now()
	write(t, store, "namespaces", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "n", DeletionTimestamp: &at}})
	write(t, store, "configmaps", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "free"}})
	write(t, store, "configmaps", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: "n", Name: "held", DeletionTimestamp: &at, Finalizers: []string{"example.com/keep"},
	}})
	answer, err := y.Answer(t.Context(), admin, Question{"ns", "", "n"})
	if err != nil || len(answer.Causes) != 1 || answer.Causes[0].Object.String() != "ConfigMap/held" || len(answer.Causes[0].Causes) != 1 {
		t.Errorf("%v %+v", err, answer)
	}
}

// TestWhoWroteIt: the writes that led to an object, by the log's own word; none if the history has lost them.
func TestWhoWroteIt(t *testing.T) {
	y, store := newWorld(t, noLeader)
	write(t, store, "nodes", aNode("a", "1"))
	pods := store.Table(corev1.SchemeGroupVersion.WithResource("pods"))
	loop := storage.WithOrigin(t.Context(), storage.Origin{User: "loop", CauseUID: "nodesa", CauseRevision: 1})
	pod := aPod("p", "a", "1")
	_, err := pods.Write(loop, "n", "p", func(*storage.View) (*storage.Change, error) { return &storage.Change{Object: pod}, nil })
	if err != nil {
		t.Fatal(err)
	}
	for caller, want := range map[*user.DefaultInfo]string{admin: "Pod/p created by loop, Node/a created by ", reader: "Pod/p created by loop, Node/ created by "} {
		answer, err := y.Answer(t.Context(), caller, Question{"pod", "n", "p"})
		var told []string
		for _, step := range answer.History {
			told = append(told, fmt.Sprintf("%s %s by %s", step.Object, step.Did, step.By))
		}
		if got := strings.Join(told, ", "); err != nil || got != want {
			t.Errorf("%s: %v\n got %s\nwant %s", caller.Name, err, got, want)
		}
	}
}

// BenchmarkPendingPod asks about a pod that fits nowhere, in a cluster of 100 nodes with 30 pods each.
func BenchmarkPendingPod(b *testing.B) {
	y, store := newWorld(b, noLeader)
	y.config.Caches.StartWithContext(b.Context())
	for i := range 100 {
		write(b, store, "nodes", aNode(fmt.Sprintf("node-%d", i), "4"))
		for j := range 30 {
			write(b, store, "pods", aPod(fmt.Sprintf("p-%d-%d", i, j), fmt.Sprintf("node-%d", i), "100m"))
		}
	}
	write(b, store, "pods", aPod("waits", "", "2"))
	if err := y.config.Caches.CatchUp(b.Context()); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if answer, err := y.Answer(b.Context(), admin, Question{"pod", "n", "waits"}); err != nil || len(answer.Nodes) != 100 {
			b.Fatal(err, len(answer.Nodes))
		}
	}
}
