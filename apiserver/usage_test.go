package apiserver

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"github.com/setpoint-io/setpoint/apiserver/resource"
	"github.com/setpoint-io/setpoint/apiserver/storage"
	"github.com/setpoint-io/setpoint/apiserver/usage"
	"github.com/setpoint-io/setpoint/raftstore/raftstoretest"
	"github.com/setpoint-io/setpoint/raftstore/state"
)

const metricsPath = "/apis/metrics.k8s.io/v1beta1/"

// steady are nodes of which each, and each container, uses half a core and 64 MiB.
type steady struct{}

func (steady) Summary(_ context.Context, node *corev1.Node, pods []*corev1.Pod) (*stats.Summary, error) {
	rate, memory := uint64(5e8), uint64(64<<20)
	cpu := &stats.CPUStats{Time: metav1.Now(), UsageNanoCores: &rate}
	s := &stats.Summary{Node: stats.NodeStats{NodeName: node.Name, CPU: cpu, Memory: &stats.MemoryStats{WorkingSetBytes: &memory}}}
	for _, p := range pods {
		s.Pods = append(s.Pods, stats.PodStats{
			PodRef:     stats.PodReference{Namespace: p.Namespace, Name: p.Name, UID: string(p.UID)},
			Containers: []stats.ContainerStats{{Name: "c", CPU: cpu, Memory: s.Node.Memory}},
		})
	}
	return s, nil
}

// measure adds the metrics API to a config, with a node and three pods on it, in two namespaces.
func measure(t *testing.T, config *Config) {
	t.Helper()
	write := func(plural string, o resource.Object) {
		table := config.Storage.Table(corev1.SchemeGroupVersion.WithResource(plural))
		_, err := table.Write(t.Context(), o.GetNamespace(), o.GetName(), func(*storage.View) (*storage.Change, error) {
			return &storage.Change{Object: o}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	write("nodes", &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "n1", Labels: map[string]string{"disk": "ssd"}}})
	for _, name := range []string{"default/a", "default/b", "other/a"} {
		namespace, name, _ := strings.Cut(name, "/")
		write("pods", &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(namespace + name), Labels: map[string]string{"app": name}},
			Spec:       corev1.PodSpec{NodeName: "n1", Containers: []corev1.Container{{Name: "c", Image: "i"}}},
			Status:     corev1.PodStatus{Phase: corev1.PodRunning},
		})
	}
	meter := usage.New(usage.Config{Store: config.Storage, Source: steady{}, Logger: config.Logger})
	config.Computed = meter.Kinds()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); meter.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
}

func TestTheMetricsAPI(t *testing.T) {
	config := serverConfig(t, raftstoretest.NewLocal(state.Options{}))
	measure(t, &config)
	server, _ := startServer(t, config)
	for path, want := range map[string]string{
		"nodes":                           "n1",
		"nodes?labelSelector=disk%3Dssd":  "n1",
		"nodes?labelSelector=disk%3Dslow": "",
		"pods":                            "default/a default/b other/a",
		"pods?labelSelector=app%3Da":      "default/a other/a",
		"pods?fieldSelector=metadata.namespace%3Dother":           "other/a",
		"namespaces/default/pods":                                 "default/a default/b",
		"namespaces/default/pods?fieldSelector=metadata.name%3Db": "default/b",
		"namespaces/nowhere/pods":                                 "",
	} {
		list := mustDo[metricsv1beta1.PodMetricsList](t, server, call{path: metricsPath + path}) // a NodeMetricsList has its metadata, too
		var got []string
		for i := range list.Items {
			got = append(got, strings.TrimPrefix(list.Items[i].Namespace+"/"+list.Items[i].Name, "/"))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v, want %s", path, got, want)
		}
	}
	one := mustDo[metricsv1beta1.PodMetrics](t, server, call{path: metricsPath + "namespaces/default/pods/a"})
	if u := one.Containers[0].Usage; u.Cpu().String() != "500m" || u.Memory().String() != "64Mi" || one.Window.Duration != 15*time.Second || one.Kind != "PodMetrics" {
		t.Errorf("%+v", one)
	}
	for _, c := range []struct {
		call
		want int
	}{
		{call{path: metricsPath + "namespaces/default/pods/nobody"}, http.StatusNotFound},
		{call{path: metricsPath + "nodes/nobody"}, http.StatusNotFound},
		{call{path: metricsPath + "pods?fieldSelector=spec.nodeName%3Dn1"}, http.StatusBadRequest},
		{call{path: metricsPath + "nodes?resourceVersion=1&resourceVersionMatch=Exact"}, http.StatusBadRequest},
		{call{path: metricsPath + "nodes?watch=1"}, http.StatusMethodNotAllowed},
		{call{path: metricsPath + "nodes", method: "POST", body: "{}"}, http.StatusMethodNotAllowed},
		{call{path: metricsPath + "nodes/n1", method: "PUT", body: "{}"}, http.StatusMethodNotAllowed},
		{call{path: metricsPath + "nodes/n1", method: "DELETE"}, http.StatusMethodNotAllowed},
		{call{path: metricsPath + "nodes/n1", method: "PATCH", body: "{}", contentType: patchTypeOf["merge"]}, http.StatusMethodNotAllowed},
		{call{path: metricsPath + "pods", accept: runtime.ContentTypeProtobuf}, http.StatusOK},
	} {
		if got := c.do(t, server); got.code != c.want {
			t.Errorf("%s %s: %d %s, want %d", c.method, c.path, got.code, got.body, c.want)
		}
	}
	var table metav1.Table
	got := call{path: metricsPath + "nodes", accept: "application/json;as=Table;v=v1;g=meta.k8s.io"}.do(t, server)
	if err := json.Unmarshal([]byte(got.body), &table); err != nil || fmt.Sprint(table.Rows[0].Cells) != "[n1 500m 64Mi 15s]" {
		t.Errorf("%v: %s", err, got.body)
	}
}

// TestAMetricsServerTakesOver while its APIService is there, and no longer.
func TestAMetricsServerTakesOver(t *testing.T) {
	server, f := newAggregatingServer(t)
	names := func() string {
		a := call{path: metricsPath + "nodes"}.do(t, server)
		var list metricsv1beta1.NodeMetricsList
		if err := json.Unmarshal([]byte(a.body), &list); err != nil || len(list.Items) != 1 {
			return fmt.Sprint(a.code)
		}
		return list.Items[0].Name
	}
	if got := names(); got != "n1" {
		t.Fatalf("what is built in says %s", got)
	}
	f.answerWith(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", runtime.ContentTypeJSON)
		fmt.Fprint(w, `{"kind":"NodeMetricsList","apiVersion":"metrics.k8s.io/v1beta1","items":[{"metadata":{"name":"theirs"}}]}`)
	})
	body := fmt.Sprintf(`{"metadata":{"name":"v1beta1.metrics.k8s.io"},"spec":{"group":"metrics.k8s.io","version":"v1beta1","groupPriorityMinimum":100,
		"versionPriority":100,"service":{"namespace":"default","name":"hook"},"caBundle":%q}}`, base64.StdEncoding.EncodeToString(f.hook.ca))
	mustDo[apiregistrationv1.APIService](t, server, call{method: "POST", path: apiServicePath, body: body})
	eventually(t, "theirs is not looked at yet", func() bool { return names() == "503" })
	f.judge(server, "v1beta1.metrics.k8s.io", metav1.ConditionTrue)
	eventually(t, "theirs answers", func() bool { return names() == "theirs" })
	mustDo[metav1.Status](t, server, call{method: "DELETE", path: apiServicePath + "/v1beta1.metrics.k8s.io"})
	eventually(t, "what is built in is back", func() bool { return names() == "n1" })
}
