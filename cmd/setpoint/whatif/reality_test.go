package whatif

import (
	"fmt"
	"maps"
	"math/rand/v2"
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
	situationsFew = 4
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

// final is what there is in the end, told by owners: which of equal nodes a pod goes to, chance decides.
func (r *reality) final(client kubernetes.Interface) (byOwner, inTotal string) {
	count, total := map[string]int{}, map[string]int{}
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
		if app := pod.Labels["app"]; strings.HasPrefix(app, "daemon") {
			state += " on " + pod.Spec.NodeName
		}
		count[owner+": "+state]++
		total[state]++
	}
	return told(count), told(total)
}

func told(count map[string]int) string {
	var lines []string
	for _, line := range slices.Sorted(maps.Keys(count)) {
		lines = append(lines, fmt.Sprintf("%s x %d", line, count[line]))
	}
	return strings.Join(lines, "; ")
}

// situation is a cluster's filling and what is to happen to it.
type situation struct {
	nodes     int
	cpus      int
	taints    [][]string
	manifests []string
	question  Question
	stdin     string
}

// generate makes a situation of a seed.
func generate(seed uint64) situation {
	random := rand.New(rand.NewPCG(seed, 40))
	s := situation{nodes: 2 + random.IntN(4), question: Question{Namespace: metav1.NamespaceDefault, For: forDefault}}
	s.cpus = 1 + random.IntN(9) // of all, so that chance does not decide how many find room
	for i := range 1 + random.IntN(3) {
		name, replicas := fmt.Sprintf("web%d", i), 1+random.IntN(6)
		s.manifests = append(s.manifests, deployment(name, "v1", replicas, s.cpus, random.IntN(3) == 0), service(name))
		if random.IntN(2) == 0 {
			s.manifests = append(s.manifests, budgetOf(name, max(1, replicas-1)))
		}
	}
	if random.IntN(2) == 0 {
		s.manifests = append(s.manifests, daemonSet("daemon"))
	}
	if random.IntN(3) == 0 {
		s.manifests = append(s.manifests, quota(6+random.IntN(10)))
	}
	if random.IntN(3) == 0 {
		s.taints = append(s.taints, []string{"taint", "node", "sim-1", "dedicated=x:NoSchedule"})
	}
	s.choose(random)
	return s
}

// choose is what is to happen.
func (s *situation) choose(random *rand.Rand) {
	node := "sim-" + strconv.Itoa(1+random.IntN(s.nodes))
	switch random.IntN(5) {
	case 0:
		s.question.Drain = node
	case 1:
		s.question.Lose = []string{node}
	case 2:
		s.question.Scale = fmt.Sprintf("deployment/web0=%d", random.IntN(25))
	case 3:
		s.question.Delete = "deployment/web0"
	case 4:
		s.question.File = "-"
		s.stdin = deployment("web0", "v2", 1+random.IntN(12), s.cpus, false)
	}
}

func deployment(name, version string, replicas, cpus int, spread bool) string {
	text := fmt.Sprintf(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: %[1]s}, spec: {replicas: %[3]d, selector: {matchLabels: {app: %[1]s}},
  template: {metadata: {labels: {app: %[1]s}}, spec: {containers: [{name: c, image: "web:%[2]s", resources: {requests: {cpu: %[4]d}}}]SPREAD}}}}`,
		name, version, replicas, cpus)
	affinity := ""
	if spread {
		affinity = fmt.Sprintf(`, affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution:
    [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: %s}}}]}}`, name)
	}
	return strings.Replace(text, "SPREAD", affinity, 1)
}

func service(name string) string {
	return fmt.Sprintf(`{apiVersion: v1, kind: Service, metadata: {name: %[1]s}, spec: {selector: {app: %[1]s}, ports: [{port: 80}]}}`, name)
}

func budgetOf(name string, available int) string {
	return fmt.Sprintf(`{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: %[1]s},
  spec: {minAvailable: %[2]d, selector: {matchLabels: {app: %[1]s}}}}`, name, available)
}

func daemonSet(name string) string {
	return fmt.Sprintf(`{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: %[1]s}, spec: {selector: {matchLabels: {app: %[1]s}},
  template: {metadata: {labels: {app: %[1]s}}, spec: {containers: [{name: c, image: d}]}}}}`, name)
}

func quota(pods int) string {
	return fmt.Sprintf(`{apiVersion: v1, kind: ResourceQuota, metadata: {name: pods}, spec: {hard: {pods: %d}}}`, pods)
}

// fill makes a cluster of the situation, at rest.
func (s *situation) fill(t *testing.T) *reality {
	t.Helper()
	r := begin(t, s.nodes)
	for _, taint := range s.taints {
		r.kubectl(taint...)
	}
	r.kubectl("apply", "--filename="+r.file(s.manifests...))
	r.pass(30 * time.Second)
	return r
}

// TestReality: what a what-if says is what comes, when the same is done to the cluster: the same pods by owner and state, the same
// refusals of budgets and quotas, the same Services without endpoints.
func TestReality(t *testing.T) {
	situations := situationsFew
	if wanted, err := strconv.Atoi(os.Getenv(situationsEnv)); err == nil {
		situations = wanted
	}
	table := make([]string, situations)
	for i := range situations {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			s := generate(uint64(i))
			r := s.fill(t)
			f := r.fork()
			said := play(t, f, s.question, s.stdin)
			told, total := r.final(f.client)
			came := play(t, r.asFork(), s.question, s.stdin)
			for app := range strings.SplitSeq(r.overQuota(f.client), ", ") {
				if app != "" && !slices.ContainsFunc(said.Quotas, func(q Quota) bool { return q.Object == "deployment/"+app }) {
					t.Errorf("the answer does not tell that a quota refuses pods of %s: %+v", app, said.Quotas)
				}
			}
			is, totalIs := r.final(r.client)
			agrees := "agrees"
			switch {
			case is == told:
			case total == totalIs && strings.Contains(total, "pending"):
				agrees = "agrees in total: chance decides who has the last room"
			default:
				t.Errorf("if %s\nthe what-if says: %s\nand it comes:     %s", &s.question, told, is)
			}
			for what, pair := range map[string][2]string{
				"budgets": {names(said.Budgets, Budget.key), names(came.Budgets, Budget.key)},
				"outages": {names(seen(said.Services), Service.key), names(seen(came.Services), Service.key)},
				"quotas":  {r.overQuota(f.client), r.overQuota(r.client)},
				"quiet":   {fmt.Sprint(said.Quiet), fmt.Sprint(came.Quiet)},
			} {
				if pair[0] != pair[1] {
					t.Errorf("if %s, %s: the what-if says %q, and it comes %q", &s.question, what, pair[0], pair[1])
				}
			}
			if t.Failed() {
				agrees = "DIFFERS"
			}
			table[i] = fmt.Sprintf("%3d  %d nodes  %-32s  %s  %s", i, s.nodes, &s.question, agrees, told)
		})
	}
	t.Log("\n" + strings.Join(table, "\n"))
}

func (b Budget) key() string  { return b.Name }
func (s Service) key() string { return fmt.Sprint(s.Name, " ", s.Lasts) }

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
	s := generate(3)
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
