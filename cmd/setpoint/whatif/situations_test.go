package whatif

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// situation is a cluster's filling and what is to happen to it.
type situation struct {
	nodes     int
	commands  [][]string // taints and labels of nodes
	manifests []string
	question  Question
	stdin     string
	// happens names what happens and what it meets, for the table.
	happens []string
}

// workload is something that makes pods.
type workload struct {
	kind, name, version, strategy, pod string
	replicas, cpus                     int
}

// generate makes a situation of a seed.
func generate(seed uint64) situation {
	random := rand.New(rand.NewPCG(seed, 40))
	s := situation{nodes: 2 + random.IntN(4), question: Question{Namespace: metav1.NamespaceDefault, For: forDefault}}
	for i := range s.nodes {
		s.commands = append(s.commands, []string{"label", "node", node(i), "zone=" + string(rune('a'+i%2))})
	}
	cpus := 1 + random.IntN(9) // of all, so that chance seldom decides how many find room
	var all []workload
	for i := range 1 + random.IntN(3) {
		w := s.workload(random, i, cpus)
		all = append(all, w)
		s.manifests = append(s.manifests, w.String(), service(w.name))
		if random.IntN(2) == 0 {
			s.manifests = append(s.manifests, budgetOf(w.name, max(1, w.replicas-1)))
			s.meets("budget")
		}
	}
	if random.IntN(2) == 0 {
		s.manifests = append(s.manifests, daemonSet("daemon"))
		s.meets("daemon")
	}
	if random.IntN(3) == 0 {
		s.manifests = append(s.manifests, quota(6+random.IntN(10)))
		s.meets("quota")
	}
	if random.IntN(3) == 0 {
		s.commands = append(s.commands, []string{"taint", "node", node(0), "dedicated=x:NoSchedule"})
		s.meets("taint")
	}
	s.choose(random, all)
	return s
}

func node(i int) string { return "sim-" + strconv.Itoa(i+1) }

func (s *situation) meets(what string) {
	if !slices.Contains(s.happens, what) {
		s.happens = append(s.happens, what)
	}
}

// workload makes one, with a rule about where its pods go. The name of one whose pods can go to one node only begins with "pinned".
func (s *situation) workload(random *rand.Rand, i, cpus int) workload {
	w := workload{kind: "Deployment", name: fmt.Sprintf("web%d", i), version: "v1", replicas: 1 + random.IntN(6), cpus: cpus}
	switch random.IntN(4) {
	case 0:
		w.kind = "StatefulSet"
		s.meets("stateful")
	case 1:
		w.strategy = `, strategy: {type: Recreate}`
	case 2:
		w.strategy = `, strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}`
	}
	rule := ""
	switch random.IntN(8) {
	case 0:
		rule, w.pod = "anti-affinity", antiAffinity(w.name)
	case 1:
		rule, w.pod = "affinity", `, affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms:
    [{matchExpressions: [{key: zone, operator: In, values: [a]}]}]}}}`
	case 2:
		rule, w.pod = "toleration", `, tolerations: [{key: dedicated, operator: Exists, effect: NoExecute, tolerationSeconds: 90},
    {key: dedicated, operator: Exists, effect: NoSchedule}]`
	case 3:
		rule, w.pod = "spread", fmt.Sprintf(`, topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule,
    labelSelector: {matchLabels: {app: %s}}}]`, w.name)
	case 4:
		on := node(random.IntN(s.nodes))
		w.name = fmt.Sprintf("pinned%d", i)
		rule, w.pod = "pinned", fmt.Sprintf(`, nodeSelector: {kubernetes.io/hostname: %s}`, on)
	}
	if rule != "" {
		s.meets(rule)
	}
	return w
}

// choose is what is to happen.
func (s *situation) choose(random *rand.Rand, all []workload) {
	first := all[0]
	target := strings.ToLower(first.kind) + "/" + first.name
	switch random.IntN(8) {
	case 0:
		s.question.Drain = node(random.IntN(s.nodes))
	case 1:
		s.question.Lose = []string{node(random.IntN(s.nodes))}
	case 2:
		s.question.Lose = []string{node(0), node(1)}
	case 3:
		s.question.Scale = fmt.Sprintf("%s=%d", target, random.IntN(25))
	case 4:
		s.question.Delete = target
	default:
		s.apply(random, all)
	}
}

// apply is one or several changes of objects at once.
func (s *situation) apply(random *rand.Rand, all []workload) {
	s.question.File = "-"
	var docs, what []string
	changes := 1 + random.IntN(3)
	kinds := random.Perm(6)
	for _, kind := range kinds[:changes] {
		w := all[random.IntN(len(all))]
		switch kind {
		case 0:
			all[0].version, what = "v2", append(what, "template")
		case 1:
			all[0].replicas, what = 1+random.IntN(12), append(what, "replicas")
		case 2:
			docs, what = append(docs, quota(2+random.IntN(16))), append(what, "quota")
		case 3:
			docs, what = append(docs, budgetOf(w.name, 1+random.IntN(4))), append(what, "budget")
		case 4:
			docs, what = append(docs, tainted(node(random.IntN(s.nodes)), "NoExecute")), append(what, "taint NoExecute")
		case 5:
			all[0].cpus, what = 1+random.IntN(9), append(what, "requests")
		}
	}
	s.stdin = strings.Join(append(docs, all[0].String()), "\n---\n")
	slices.Sort(what)
	s.happens = append([]string{"apply " + strings.Join(what, " + ")}, s.happens...)
}

// String says what happens to what.
func (s *situation) String() string {
	text := strings.Join(s.happens, ", ")
	if s.question.File == "" {
		text = strings.TrimSuffix(s.question.String()+"; "+text, "; ")
	}
	return text
}

// String is the workload's manifest.
func (w workload) String() string {
	if w.kind == "StatefulSet" {
		w.strategy = fmt.Sprintf(`, serviceName: %s, podManagementPolicy: Parallel`, w.name)
	}
	return fmt.Sprintf(`{apiVersion: apps/v1, kind: %[1]s, metadata: {name: %[2]s}, spec: {replicas: %[3]d, selector: {matchLabels: {app: %[2]s}}%[4]s,
  template: {metadata: {labels: {app: %[2]s}}, spec: {containers: [{name: c, image: "web:%[5]s", resources: {requests: {cpu: %[6]d}}}]%[7]s}}}}`,
		w.kind, w.name, w.replicas, w.strategy, w.version, w.cpus, w.pod)
}

func deployment(name, version string, replicas, cpus int) string {
	return workload{kind: "Deployment", name: name, version: version, replicas: replicas, cpus: cpus}.String()
}

// apart is a Deployment of two pods on two nodes.
func apart(name string) string {
	return workload{kind: "Deployment", name: name, version: "v1", replicas: 2, cpus: 1, pod: antiAffinity(name)}.String()
}

func antiAffinity(app string) string {
	return fmt.Sprintf(`, affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution:
    [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: %s}}}]}}`, app)
}

func tainted(node, effect string) string {
	return fmt.Sprintf(`{apiVersion: v1, kind: Node, metadata: {name: %s}, spec: {taints: [{key: dedicated, value: x, effect: %s}]}}`, node, effect)
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
	for _, command := range s.commands {
		r.kubectl(command...)
	}
	r.kubectl("apply", "--filename="+r.file(s.manifests...))
	r.pass(30 * time.Second)
	return r
}
