package lists

import (
	"context"
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/setpoint-io/setpoint"
)

// metric is what upstream promises of one: it keeps its name, type, labels and buckets.
type metric struct {
	name, kind string // kind is empty if the source does not say
	labels     []string
	bounds     []float64 // of buckets
}

func (m metric) String() string {
	if m.bounds == nil {
		return fmt.Sprintf("%s %s %q", m.name, m.kind, m.labels)
	}
	return fmt.Sprintf("%s %s %q %.4v", m.name, m.kind, m.labels, m.bounds)
}

// upstreamsStableMetrics are those whose options or descriptions in upstream's source say STABLE.
func upstreamsStableMetrics(t *testing.T) (found []metric) {
	t.Helper()
	for _, dir := range upstreamModules(t) {
		read(t, dir, "STABLE", func(f file) {
			ast.Inspect(f.syntax, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok && len(call.Args) > 0 {
					if m, ok := f.stable(t, call); ok {
						found = append(found, m)
					}
				}
				return true
			})
		})
	}
	return found
}

// stable reads a call that makes a stable metric: NewGaugeVec(&GaugeOpts{…}, labels), or NewDesc(name, help, labels, nil, STABLE, "").
func (f file) stable(t *testing.T, call *ast.CallExpr) (metric, bool) {
	t.Helper()
	if len(call.Args) == 6 && called(call) == "NewDesc" && isStable(call.Args[4]) {
		name, ok := f.text(call.Args[0])
		labels, listed := f.labels(call.Args[2])
		if !ok || !listed {
			t.Fatalf("%s: a stable metric that this test cannot read", f.path)
		}
		return metric{name: name, labels: labels}, true
	}
	options := optionsOf(call.Args[0])
	if options == nil || !isStable(options["StabilityLevel"]) {
		return metric{}, false
	}
	m := metric{kind: strings.ToLower(strings.TrimSuffix(strings.TrimPrefix(called(call), "New"), "Vec"))}
	parts, readable := []string{}, true
	for _, part := range []string{"Namespace", "Subsystem", "Name"} {
		if e := options[part]; e != nil {
			text, ok := f.text(e)
			parts, readable = append(parts, text), readable && ok
		}
	}
	m.name = strings.Join(parts, "_")
	if len(call.Args) > 1 {
		var listed bool
		m.labels, listed = f.labels(call.Args[1])
		readable = readable && listed
	}
	if m.kind == "histogram" {
		m.bounds = bounds(options["Buckets"])
		readable = readable && m.bounds != nil
	}
	if !readable {
		t.Fatalf("%s: a stable metric that this test cannot read", f.path)
	}
	return m, true
}

func isStable(e ast.Expr) bool {
	level, ok := e.(*ast.SelectorExpr)
	return ok && level.Sel.Name == "STABLE"
}

// optionsOf are the fields of &XOpts{…}; nil if that is something else.
func optionsOf(e ast.Expr) map[string]ast.Expr {
	if pointer, ok := e.(*ast.UnaryExpr); ok {
		e = pointer.X
	}
	value, ok := e.(*ast.CompositeLit)
	if !ok {
		return nil
	}
	options := map[string]ast.Expr{}
	for _, element := range value.Elts {
		if pair, ok := element.(*ast.KeyValueExpr); ok {
			if key, ok := pair.Key.(*ast.Ident); ok {
				options[key.Name] = pair.Value
			}
		}
	}
	return options
}

// bounds reads []float64{…} or ExponentialBuckets(…); nil for anything else.
func bounds(e ast.Expr) (found []float64) {
	switch e := e.(type) {
	case *ast.CompositeLit:
		found = numbers(e.Elts)
	case *ast.CallExpr:
		if args := numbers(e.Args); len(args) == 3 && called(e) == "ExponentialBuckets" {
			found = prometheus.ExponentialBuckets(args[0], args[1], int(args[2]))
		}
	}
	return found
}

// numbers reads numbers and products of them; nil if something else is among them.
func numbers(list []ast.Expr) (found []float64) {
	for _, e := range list {
		value, err := types.Eval(token.NewFileSet(), nil, token.NoPos, types.ExprString(e))
		if err != nil {
			return nil
		}
		number, _ := constant.Float64Val(constant.ToFloat(value.Value))
		found = append(found, number)
	}
	return found
}

// labels reads []string{…}, or nil, in order.
func (f file) labels(e ast.Expr) (labels []string, ok bool) {
	list, ok := e.(*ast.CompositeLit)
	if !ok {
		none, is := e.(*ast.Ident)
		return nil, is && none.Name == "nil"
	}
	for _, element := range list.Elts {
		text, ok := f.text(element)
		if !ok {
			return nil, false
		}
		labels = append(labels, text)
	}
	slices.Sort(labels)
	return labels, true
}

// nodesPage is what a node answers at /metrics/resource, which agent/api/kubeletapi's tests hold.
const nodesPage = "../../../agent/api/kubeletapi/testdata/resource.txt"

// started is a cluster of this test.
func started(t *testing.T, config setpoint.Config) kubernetes.Interface {
	t.Helper()
	cluster, err := setpoint.Start(t.Context(), config)
	try(t, err)
	t.Cleanup(func() { _ = cluster.Stop() })
	try(t, cluster.Ready(t.Context()))
	access, err := cluster.RESTConfig()
	try(t, err)
	return kubernetes.NewForConfigOrDie(access)
}

// served are the metrics of a cluster in which something happens, and of a node.
func served(t *testing.T) map[string]metric {
	t.Helper()
	client := started(t, setpoint.Config{InMemory: true, SimulatedNodes: 1})
	happen(t, client)
	text, err := os.ReadFile(nodesPage)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]metric{}
	parse(t, string(text), found)
	for _, path := range []string{"/metrics", "/metrics/slis", "/metrics/resources"} {
		text, err := client.CoreV1().RESTClient().Get().AbsPath(path).DoRaw(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		parse(t, string(text), found)
	}
	return found
}

func parse(t *testing.T, text string, found map[string]metric) {
	t.Helper()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	for name, family := range families {
		found[name] = metric{name, strings.ToLower(family.GetType().String()), labelsOf(family), boundsOf(family)}
	}
}

func labelsOf(family *dto.MetricFamily) (labels []string) {
	for _, l := range family.GetMetric()[0].GetLabel() {
		labels = append(labels, l.GetName())
	}
	slices.Sort(labels)
	return labels
}

func boundsOf(family *dto.MetricFamily) (bounds []float64) {
	for _, b := range family.GetMetric()[0].GetHistogram().GetBucket() {
		if !math.IsInf(b.GetUpperBound(), 1) {
			bounds = append(bounds, b.GetUpperBound())
		}
	}
	return bounds
}

// happen makes what gives metrics with labels their first series: a Job that ends, a deprecated API in use, a pod with resources, and a
// webhook that refuses.
func happen(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	ctx := t.Context()
	_, err := client.CoreV1().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
	try(t, err)
	_, err = client.CoreV1().RESTClient().Get().AbsPath("/api/v1/namespaces/default/endpoints").DoRaw(ctx)
	try(t, err)
	_, err = client.CoreV1().Pods("default").Create(ctx, example("pod"), metav1.CreateOptions{})
	try(t, err)
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "job"}, Spec: batchv1.JobSpec{
		Completions: new(int32(0)), Template: corev1.PodTemplateSpec{Spec: example("").Spec}}}
	job.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	_, err = client.BatchV1().Jobs("default").Create(ctx, job, metav1.CreateOptions{})
	try(t, err)
	refuseConfigMaps(t, client)
	await(t, func() bool {
		pod, err := client.CoreV1().Pods("default").Get(ctx, "pod", metav1.GetOptions{})
		try(t, err)
		job, err := client.BatchV1().Jobs("default").Get(ctx, "job", metav1.GetOptions{})
		try(t, err)
		return pod.Status.Phase == corev1.PodRunning && job.Status.CompletionTime != nil
	})
}

func example(name string) *corev1.Pod {
	amounts := corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Mi")}
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Name: "c", Image: "web", Resources: corev1.ResourceRequirements{Requests: amounts, Limits: amounts}}}}}
}

func try(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// patience is how long await waits at most: minutes on a machine that has other things to do.
const patience = 5 * time.Minute

// await asks until it is so.
func await(t *testing.T, so func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for tick := time.NewTicker(10 * time.Millisecond); !so(); {
		select {
		case <-ctx.Done():
			t.Fatal(ctx.Err())
		case <-tick.C:
		}
	}
}

// refuseConfigMaps makes a webhook that nobody answers, until it refuses.
func refuseConfigMaps(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	hook := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "nobody"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "nobody.example.com", ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: new("https://127.0.0.1:1/")},
			SideEffects: new(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{"CREATE"},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
			}},
		}}}
	_, err := client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(t.Context(), hook, metav1.CreateOptions{})
	try(t, err)
	await(t, func() bool {
		_, err := client.CoreV1().ConfigMaps("default").Create(t.Context(),
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "c"}}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil
	})
}

// excused reads the table of docs/compatibility.md between two marks: why a name is missing here.
func excused(t *testing.T, mark string) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../../../docs/compatibility.md")
	try(t, err)
	_, rest, begins := strings.Cut(string(text), "<!-- "+mark+": begin -->\n")
	table, _, ends := strings.Cut(rest, "<!-- "+mark+": end -->")
	if !begins || !ends {
		t.Fatalf("docs/compatibility.md has no table of %s", mark)
	}
	why := map[string]string{}
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for name := range strings.SplitSeq(cells[0], ",") {
			if name = strings.Trim(strings.TrimSpace(name), "`"); len(cells) == 2 && !strings.HasPrefix(name, "-") {
				why[name] = strings.TrimSpace(cells[1])
			}
		}
	}
	return why
}

// TestStableMetrics: each of upstream's stable metrics is served with its type, labels and buckets, or docs/compatibility.md says why not.
func TestStableMetrics(t *testing.T) {
	upstream, here, why := upstreamsStableMetrics(t), served(t), excused(t, "stable metrics")
	t.Logf("%d stable metrics of upstream", len(upstream))
	if len(upstream) < 30 {
		t.Fatalf("only %d stable metrics are found in upstream's source: %v", len(upstream), upstream)
	}
	for _, want := range upstream {
		got, is := here[want.name]
		reason, excuse := why[want.name]
		delete(why, want.name)
		if want.kind == "" {
			want.kind = got.kind
		}
		switch {
		case excuse && is:
			t.Errorf("%s is served; docs/compatibility.md says: %s", got, reason)
		case !excuse && !is:
			t.Errorf("%s is missing: serve it, or say why not in the table of docs/compatibility.md", want)
		case is && got.String() != want.String():
			t.Errorf("%s, upstream has %s", got, want)
		}
	}
	delete(why, "metric")
	for name := range why {
		t.Errorf("%s is no stable metric of upstream's; take it out of docs/compatibility.md", name)
	}
}
