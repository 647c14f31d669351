package whatif

import (
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
	// playedAgain is how often a situation is played again in which the two differ.
	playedAgain = 20
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

func told(all map[outcome]bool) string {
	var lines []string
	for one := range all {
		lines = append(lines, fmt.Sprintf("%+v", one))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// outcome is how a situation ends, told by owners: which of equal nodes a pod goes to, chance decides.
type outcome struct{ pods, budgets, outages, quotas, quiet string }

// outcomes plays a situation once: how the what-if ends, and how it comes.
func (s *situation) outcomes(t *testing.T) (said, came outcome) {
	t.Helper()
	r := s.fill(t)
	f := r.fork()
	answer := play(t, f, s.question, s.stdin)
	said = r.outcome(f.client, answer)
	for app := range strings.SplitSeq(said.quotas, ", ") {
		if app != "" && !slices.ContainsFunc(answer.Quotas, func(q Quota) bool { return strings.HasSuffix(q.Object, "/"+app) }) {
			t.Errorf("the answer does not tell that a quota refuses pods of %s: %+v", app, answer.Quotas)
		}
	}
	return said, r.outcome(r.client, play(t, r.asFork(), s.question, s.stdin))
}

func (r *reality) outcome(client kubernetes.Interface, answer *Answer) outcome {
	r.t.Helper()
	return outcome{
		r.final(client), names(kept(answer.Budgets), Budget.key), names(seen(answer.Services), Service.key), r.overQuota(client),
		fmt.Sprint(answer.Quiet),
	}
}

// TestReality: what a what-if says is what comes, when the same is done to the cluster: the same pods by owner and state, and by node
// where they can go to one only, the same refusals of budgets and quotas, the same Services without endpoints.
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
			case said.quotas != "" && came.quotas != "" && said.total() == came.total():
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

// total are the pods by state alone, whoever owns them.
func (o outcome) total() string {
	count := map[string]int{}
	for one := range strings.SplitSeq(o.pods, "; ") {
		_, state, _ := strings.Cut(one, ": ")
		state, n, _ := strings.Cut(state, " x ")
		state, _, _ = strings.Cut(state, " on ")
		pods, _ := strconv.Atoi(n) // of none there is nothing to count
		count[state] += pods
	}
	return fmt.Sprint(count)
}

// judged plays a situation again in which the what-if and the cluster differ. If chance decides, the cluster too ends as the what-if has
// said: two owners want the last pod of a quota, say.
func (s *situation) judged(t *testing.T, said, came outcome) string {
	t.Helper()
	ends, words := map[outcome]bool{came: true}, map[outcome]bool{said: true}
	for range playedAgain {
		again, is := s.outcomes(t)
		words[again], ends[is] = true, true
		if ends[said] {
			return "agrees, where chance decides"
		}
	}
	t.Errorf("if %s\nthe what-if says: %+v\nand it comes:     %+v\nand however often it is done: the what-ifs say %+v\nit comes %+v",
		s, said, came, told(words), told(ends))
	return ""
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

// overQuota are the ReplicaSets of which a quota refuses pods in the end. The events of reality do not tell: of many of one object
// the recorder drops some.
func (r *reality) overQuota(client kubernetes.Interface) string {
	r.t.Helper()
	list, err := client.AppsV1().ReplicaSets("").List(r.t.Context(), metav1.ListOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
	var refused []string
	for i := range list.Items {
		for _, c := range list.Items[i].Status.Conditions {
			if strings.Contains(c.Message, "exceeded quota") {
				refused = append(refused, list.Items[i].Labels["app"])
			}
		}
	}
	slices.Sort(refused)
	return strings.Join(refused, ", ")
}

func names[T any](of []T, key func(T) string) string {
	keys := make([]string, len(of))
	for i, one := range of {
		keys[i] = key(one)
	}
	slices.Sort(keys)
	return strings.Join(keys, ", ")
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
