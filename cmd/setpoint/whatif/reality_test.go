package whatif

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/setpoint-io/setpoint"
	"github.com/setpoint-io/setpoint/internal/kubectlrun"
)

// situationsEnv is how many situations are played; `make what-if` sets it.
const (
	situationsEnv = "SETPOINT_SITUATIONS"
	situationsFew = 10
	// playedAgain is how often a situation is played again in which the two differ, and pairsMin is how many pairs of the same outcome
	// there must be then: a third of all plays.
	playedAgain = 20
	pairsMin    = (playedAgain + 1) / 3
)

// reality is a cluster that what-ifs are asked of, and to which the same is done then.
type reality struct {
	*setpoint.Cluster
	t      *testing.T
	client *kubernetes.Clientset
}

func begin(t *testing.T, nodes int) *reality {
	t.Helper()
	cluster, err := setpoint.Start(t.Context(), setpoint.Config{InMemory: true, SimulatedNodes: nodes})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	if err := cluster.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(cluster.ClientConfig(adminUser()))
	if err != nil {
		t.Fatal(err)
	}
	r := &reality{cluster, t, client}
	r.pass(20 * time.Second)
	return r
}

func (r *reality) pass(d time.Duration) {
	r.t.Helper()
	if err := r.Advance(r.t.Context(), d); err != nil {
		r.t.Fatal(err)
	}
}

func (r *reality) kubectl(args ...string) {
	r.t.Helper()
	run := kubectlrun.Kubectl{Config: r.ClientConfig(adminUser()), Namespace: metav1.NamespaceDefault, Dir: r.t.TempDir()}
	if _, errOut, err := run.Run(r.t.Context(), args...); err != nil {
		r.t.Fatalf("kubectl %v: %v %s", args, err, errOut)
	}
}

// fork is a what-if's, which ends with the test.
func (r *reality) fork() *fork {
	r.t.Helper()
	f, err := open(r.t.Context(), r.ClientConfig(adminUser()), forkBytesMax)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		if err := f.close(); err != nil {
			r.t.Error(err)
		}
	})
	return f
}

// asFork is reality in the place of a fork: what the question says is done to it.
func (r *reality) asFork() *fork {
	f := &fork{Cluster: r.Cluster, client: r.client, copied: r.copying(), dir: r.t.TempDir(), revision: r.Revision()}
	for _, pod := range r.list(r.client) {
		f.copied.pods = append(f.copied.pods, &pod)
	}
	return f
}

func (r *reality) list(client kubernetes.Interface) []corev1.Pod {
	r.t.Helper()
	list, err := client.CoreV1().Pods("").List(r.t.Context(), metav1.ListOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
	return list.Items
}

func (r *reality) copying() *copying {
	c, err := newCopying(nil)
	if err != nil {
		r.t.Fatal(err)
	}
	return c
}

// file is a file with manifests.
func (r *reality) file(manifests ...string) string {
	r.t.Helper()
	file := filepath.Join(r.t.TempDir(), "filling.yaml")
	if err := os.WriteFile(file, []byte(strings.Join(manifests, "\n---\n")), 0o600); err != nil {
		r.t.Fatal(err)
	}
	return file
}

func play(t *testing.T, f *fork, q Question, stdin string) *Answer {
	t.Helper()
	answer := &Answer{}
	if err := f.play(t.Context(), q, strings.NewReader(stdin), answer); err != nil {
		t.Fatal(err)
	}
	return answer
}

// final are the pods that there are in the end.
func (r *reality) final(client kubernetes.Interface) string {
	count := map[string]int{}
	for _, pod := range r.list(client) {
		if pod.Namespace == metav1.NamespaceSystem { // the servers' own
			continue
		}
		owner := pod.Name
		if c := metav1.GetControllerOf(&pod); c != nil {
			owner = c.Kind + " " + pod.Labels["app"]
		}
		state := "not ready"
		switch {
		case pod.DeletionTimestamp != nil:
			state = "ending on " + pod.Spec.NodeName
		case over(&pod):
			state = "over"
		case pod.Spec.NodeName == "":
			state = "pending"
		case isReady(&pod):
			state = "ready"
		}
		if app := pod.Labels["app"]; strings.HasPrefix(app, "daemon") || strings.HasPrefix(app, "pinned") {
			state += " on " + pod.Spec.NodeName
		}
		count[owner+": "+state]++
	}
	var lines []string
	for _, line := range slices.Sorted(maps.Keys(count)) {
		lines = append(lines, fmt.Sprintf("%s x %d", line, count[line]))
	}
	return strings.Join(lines, "; ")
}

func told(all map[outcome]int) string {
	var lines []string
	for one, n := range all {
		lines = append(lines, fmt.Sprintf("%d times %+v", n, one))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// outcome is how a situation ends, told by owners: which of equal nodes a pod goes to, chance decides.
type outcome struct{ pods, budgets, outages, quotas, quiet string }

// outcomes plays a situation once: how the what-if ends, and how it comes. The clusters end with the play.
func (s *situation) outcomes(t *testing.T) (said, came outcome) {
	t.Helper()
	t.Run("play", func(t *testing.T) {
		r := s.fill(t)
		f := r.fork()
		answer := play(t, f, s.question, s.stdin)
		said = r.outcome(f.client, answer)
		for app := range strings.SplitSeq(said.quotas, ", ") {
			if app != "" && !slices.ContainsFunc(answer.Quotas, func(q Quota) bool { return strings.HasSuffix(q.Object, "/"+app) }) {
				t.Errorf("the answer does not tell that a quota refuses pods of %s: %+v", app, answer.Quotas)
			}
		}
		came = r.outcome(r.client, play(t, r.asFork(), s.question, s.stdin))
	})
	return said, came
}

func (r *reality) outcome(client kubernetes.Interface, answer *Answer) outcome {
	r.t.Helper()
	return outcome{
		r.final(client), names(kept(answer.Budgets), Budget.key), names(seen(answer.Services), Service.key), r.overQuota(client),
		fmt.Sprint(answer.Quiet),
	}
}

// TestReality: what a what-if says is what comes, when the same is done to the cluster: the same pods by owner and state, and by node
// where they can go to one only, the same refusals of budgets and quotas, the same Services without endpoints, and whether it comes to
// rest. Of owners whose pods a quota refuses, both have to tell the same owners, and how many pods these have together in each state.
// Where the two differ, the situation is played again: see judged.
func TestReality(t *testing.T) {
	situations := situationsFew
	if wanted, err := strconv.Atoi(os.Getenv(situationsEnv)); err == nil {
		situations = wanted
	}
	table, count := make([]string, situations), map[string]int{}
	for i := range situations {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			s := generate(uint64(i))
			said, came := s.outcomes(t)
			agrees := "agrees"
			switch {
			case said == came:
			case said.inNumber() == came.inNumber():
				agrees = "agrees in number, chance decides whose pods a quota has"
			default:
				agrees = s.judged(t, said, came)
			}
			if t.Failed() {
				agrees = "DIFFERS"
			}
			count[agrees]++
			table[i] = fmt.Sprintf("%3d  %d nodes  %s  %s  %s", i, s.nodes, agrees, &s, said.pods)
		})
	}
	t.Logf("%v\n%s", count, strings.Join(table, "\n"))
}

// inNumber is the outcome, but of the owners whose pods a quota refuses it has only how many pods they have together in which state.
func (o outcome) inNumber() outcome {
	refused := strings.Split(o.quotas, ", ")
	var others []string
	together := map[string]int{}
	for one := range strings.SplitSeq(o.pods, "; ") {
		owner, state, _ := strings.Cut(one, ": ")
		if _, app, found := strings.Cut(owner, " "); !found || !slices.Contains(refused, app) {
			others = append(others, one)
			continue
		}
		state, n, _ := strings.Cut(state, " x ")
		state, _, _ = strings.Cut(state, " on ")
		pods, err := strconv.Atoi(n)
		if err != nil {
			panic(err) // final has written it
		}
		together[state] += pods
	}
	o.pods = fmt.Sprint(others, together)
	return o
}

// judged plays a situation again in which the what-if and the cluster differ: if chance decides, say where the last room is taken, it
// decides on both sides alike. So of what the what-ifs say and what comes, each time, at least pairsMin pairs of equal outcomes can be
// made. A what-if that always tells what comes seldom finds as few as that.
func (s *situation) judged(t *testing.T, said, came outcome) string {
	t.Helper()
	words, ends := map[outcome]int{said.inNumber(): 1}, map[outcome]int{came.inNumber(): 1}
	for range playedAgain {
		if said, came = s.outcomes(t); t.Failed() {
			return ""
		}
		words[said.inNumber()]++
		ends[came.inNumber()]++
		if pairs(words, ends) >= pairsMin {
			return "agrees, where chance decides"
		}
	}
	t.Errorf("if %s\nof %d plays %d can be paired\nthe what-ifs say\n%s\nit comes\n%s",
		s, playedAgain+1, pairs(words, ends), told(words), told(ends))
	return ""
}

// pairs are how many pairs of equal outcomes can be made.
func pairs(words, ends map[outcome]int) (all int) {
	for one, n := range words {
		all += min(n, ends[one])
	}
	return all
}

func (b Budget) key() string  { return b.Name }
func (s Service) key() string { return fmt.Sprint(s.Name, " ", s.Lasts) }

// kept are budgets that refuse something or are not kept for long: see seen.
func kept(all []Budget) []Budget {
	return slices.DeleteFunc(slices.Clone(all), func(b Budget) bool {
		return b.Refused == 0 && !b.Lasts && time.Duration(b.Broken) <= 2*stepLength
	})
}

// seen are outages that last: whether a shorter one falls between two looks, chance decides.
func seen(all []Service) []Service {
	return slices.DeleteFunc(slices.Clone(all), func(s Service) bool { return !s.Lasts && time.Duration(s.For) <= 2*stepLength })
}

// overQuota are the owners whose pods a quota refuses in the end. Of a ReplicaSet its condition tells. A StatefulSet and a DaemonSet have
// none: they are those with fewer pods than they want where a quota has no pod left. The events of reality do not tell: of many of one
// object the recorder drops some.
func (r *reality) overQuota(client kubernetes.Interface) string {
	r.t.Helper()
	apps, all := client.AppsV1(), metav1.ListOptions{}
	replicaSets, err := apps.ReplicaSets("").List(r.t.Context(), all)
	statefulSets, errStateful := apps.StatefulSets("").List(r.t.Context(), all)
	daemonSets, errDaemon := apps.DaemonSets("").List(r.t.Context(), all)
	quotas, errQuotas := client.CoreV1().ResourceQuotas("").List(r.t.Context(), all)
	if err := errors.Join(err, errStateful, errDaemon, errQuotas); err != nil {
		r.t.Fatal(err)
	}
	var refused []string
	for i := range replicaSets.Items {
		for _, c := range replicaSets.Items[i].Status.Conditions {
			if strings.Contains(c.Message, "exceeded quota") {
				refused = append(refused, replicaSets.Items[i].Labels["app"])
			}
		}
	}
	full := func(namespace string) bool {
		return slices.ContainsFunc(quotas.Items, func(q corev1.ResourceQuota) bool { return q.Namespace == namespace && isFull(&q) })
	}
	for _, set := range statefulSets.Items {
		if set.Status.Replicas < *set.Spec.Replicas && full(set.Namespace) {
			refused = append(refused, set.Name)
		}
	}
	for _, set := range daemonSets.Items {
		if set.Status.CurrentNumberScheduled < set.Status.DesiredNumberScheduled && full(set.Namespace) {
			refused = append(refused, set.Name)
		}
	}
	slices.Sort(refused)
	return strings.Join(refused, ", ")
}

// isFull tells that a quota has no pod left.
func isFull(q *corev1.ResourceQuota) bool {
	hard, limited := q.Spec.Hard[corev1.ResourcePods]
	used := q.Status.Used[corev1.ResourcePods]
	return limited && used.Cmp(hard) >= 0
}

func names[T any](of []T, key func(T) string) string {
	keys := make([]string, len(of))
	for i, one := range of {
		keys[i] = key(one)
	}
	slices.Sort(keys)
	return strings.Join(keys, ", ")
}

// TestOverQuota: whoever owns the pods that a quota refuses is seen, and the answer tells of it.
func TestOverQuota(t *testing.T) {
	r := begin(t, 3)
	r.kubectl("apply", "--filename="+r.file(quota(2)))
	set := workload{kind: "StatefulSet", name: "db", version: "v1", replicas: 4, cpus: 1}.String()
	f := r.fork()
	answer := play(t, f, Question{Namespace: metav1.NamespaceDefault, For: forDefault, File: "-"},
		strings.Join([]string{set, deployment("web", "v1", 4, 1), daemonSet("daemon")}, "\n---\n"))
	if is, want := r.overQuota(f.client), "daemon, db, web"; is != want {
		t.Errorf("a quota refuses pods of %s, not of %s", is, want)
	}
	if is, want := names(answer.Quotas, func(q Quota) string { return q.Object }), "daemonset/daemon, deployment/web, statefulset/db"; is != want {
		t.Errorf("the answer tells of %s, not of %s", is, want)
	}
}

// TestInNumber: a quota excuses other pods of the owners that it refuses, if they are as many, and nothing else.
func TestInNumber(t *testing.T) {
	is := outcome{budgets: "web0", quotas: "web0, web1", quiet: "true"}
	is.pods = "ReplicaSet web0: ready x 4; ReplicaSet web1: ready x 2; StatefulSet pinned2: ready on sim-1 x 1"
	same := is
	same.pods = "ReplicaSet web0: ready x 3; ReplicaSet web1: ready x 3; StatefulSet pinned2: ready on sim-1 x 1"
	if is.inNumber() != same.inNumber() {
		t.Errorf("%+v is not %+v", is.inNumber(), same.inNumber())
	}
	for what, change := range map[string]func(*outcome){
		"budgets": func(o *outcome) { o.budgets = "" },
		"outages": func(o *outcome) { o.outages = "web1 true" },
		"quotas":  func(o *outcome) { o.quotas = "web1" },
		"quiet":   func(o *outcome) { o.quiet = "false" },
		"number":  func(o *outcome) { o.pods = strings.Replace(o.pods, "x 2", "x 3", 1) },
		"state":   func(o *outcome) { o.pods = strings.Replace(o.pods, "web1: ready", "web1: pending", 1) },
		"node":    func(o *outcome) { o.pods = strings.Replace(o.pods, "sim-1", "sim-2", 1) },
		"owner":   func(o *outcome) { o.pods = strings.Replace(o.pods, "pinned2", "pinned3", 1) },
	} {
		other := is
		if change(&other); is.inNumber() == other.inNumber() {
			t.Errorf("other %s are not seen: %+v", what, other)
		}
	}
}

// TestPairs: where chance decides on both sides there are enough, and too few for a what-if that always tells what comes seldom.
func TestPairs(t *testing.T) {
	often, seldom := outcome{pods: "often"}, outcome{pods: "seldom"}
	for _, at := range []struct {
		words, ends map[outcome]int
		enough      bool
	}{
		{map[outcome]int{often: 12, seldom: 9}, map[outcome]int{often: 8, seldom: 13}, true},
		{map[outcome]int{often: 20, seldom: 1}, map[outcome]int{often: 19, seldom: 2}, true},
		{map[outcome]int{seldom: 21}, map[outcome]int{often: 18, seldom: 3}, false},
		{map[outcome]int{seldom: 21}, map[outcome]int{often: 21}, false},
	} {
		if n := pairs(at.words, at.ends); n >= pairsMin != at.enough {
			t.Errorf("%d pairs of %v and %v", n, at.words, at.ends)
		}
	}
}

// TestNothingIsWritten to the cluster, whatever is done to its fork.
func TestNothingIsWritten(t *testing.T) {
	s := situation{nodes: 3, manifests: []string{deployment("web0", "v1", 4, 1), service("web0"), budgetOf("web0", 2), daemonSet("daemon")}}
	r := s.fill(t)
	before := r.Revision()
	for _, q := range []Question{{Lose: []string{"sim-1"}}, {Drain: "sim-2"}, {Delete: "deployment/web0"}, {Scale: "deployment/web0=9"}} {
		q.Namespace, q.For = metav1.NamespaceDefault, 7*time.Minute
		play(t, r.fork(), q, "")
	}
	changes, err := r.Changes(before)
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range changes {
		if change.Resource.Resource != "leases" { // of its nodes, whose time goes on
			t.Errorf("%+v", change)
		}
	}
}
