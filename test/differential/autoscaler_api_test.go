package differential

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	fakediscovery "k8s.io/client-go/discovery/fake"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/fake"
	restclient "k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/scale"
	"k8s.io/klog/v2"
	upstreamautoscaler "k8s.io/kubernetes/pkg/controller/podautoscaler"
	upstreammetrics "k8s.io/kubernetes/pkg/controller/podautoscaler/metrics"
	custommetrics "k8s.io/metrics/pkg/apis/custom_metrics/v1beta2"
	externalmetrics "k8s.io/metrics/pkg/apis/external_metrics/v1beta1"
	metrics "k8s.io/metrics/pkg/apis/metrics/v1beta1"
	resourceclient "k8s.io/metrics/pkg/client/clientset/versioned/typed/metrics/v1beta1"
	customclient "k8s.io/metrics/pkg/client/custom_metrics"
	externalclient "k8s.io/metrics/pkg/client/external_metrics"

	"github.com/setpoint-io/setpoint/controllers/podautoscaler"
	"github.com/setpoint-io/setpoint/controllers/reconcile/reconciletest"
)

// load is what the metrics APIs of a world answer.
type load struct {
	// Use is what each container uses, in thousandths; of a later pod it is a little more.
	Use int64
	// Missing are the pods without a sample, AgeSeconds how old the others are.
	Missing    []int
	AgeSeconds int
	// Value is that of the custom and external metrics, in thousandths; External splits it.
	Value    int64
	External int
	// Broken APIs answer with an error, Empty ones with nothing.
	Broken, Empty []string
	// Scale is how writes of the scale are refused: not at all if it is empty.
	Scale string
}

func newLoad(g *generator) load {
	l := load{Use: int64(g.IntN(200)), AgeSeconds: pick(g, 0, 0, 30, 300), Value: int64(g.IntN(1500)), External: 1 + g.IntN(2)}
	for i := range podsMax {
		if g.chance(9) {
			l.Missing = append(l.Missing, i)
		}
	}
	for _, group := range []string{metrics.GroupName, custommetrics.GroupName, externalmetrics.GroupName} {
		switch g.IntN(9) {
		case 0:
			l.Broken = append(l.Broken, group)
		case 1:
			l.Empty = append(l.Empty, group)
		}
	}
	if g.chance(12) {
		l.Scale = pick(g, "conflict", "forbidden")
	}
	return l
}

func (l load) data() map[string]string { return map[string]string{loadName: text1(l)} }

// set makes it what the APIs answer.
func (l load) set(w *world) {
	c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: loadName, Namespace: w.namespace}, Data: l.data()}
	if _, err := w.Client.CoreV1().ConfigMaps(w.namespace).Update(context.Background(), c, metav1.UpdateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// metricsAPI answers requests for scales and metrics, from what is in a world.
type metricsAPI struct{ w *reconciletest.World }

func (a metricsAPI) RoundTrip(r *http.Request) (*http.Response, error) {
	var status *apierrors.StatusError
	answer, err := a.answer(r)
	code := http.StatusOK
	if err != nil {
		if !asStatus(err, &status) {
			return nil, err
		}
		answer, code = status.Status(), int(status.Status().Code)
	}
	body, err := json.Marshal(answer)
	if err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body)), Request: r}, nil
}

func asStatus(err error, into **apierrors.StatusError) bool {
	status, is := err.(*apierrors.StatusError)
	*into = status
	return is
}

// answer reads a path: /apis/GROUP/VERSION/namespaces/NAMESPACE/RESOURCE/...
func (a metricsAPI) answer(r *http.Request) (any, error) {
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/apis/"), "/")
	if len(parts) < 5 {
		return nil, fmt.Errorf("no such path: %s", r.URL.Path)
	}
	group, namespace, rest := parts[0], parts[3], parts[4:]
	l, err := a.load(namespace)
	if err != nil {
		return nil, err
	}
	if slices.Contains(l.Broken, group) {
		return nil, apierrors.NewServiceUnavailable("the metrics of " + group + " are not there")
	}
	selector, err := labels.Parse(r.URL.Query().Get("labelSelector"))
	if err != nil {
		return nil, err
	}
	switch group {
	case "apps":
		return a.scale(r, namespace, l)
	case metrics.GroupName:
		return a.resources(namespace, selector, l), nil
	case custommetrics.GroupName:
		return a.custom(namespace, rest, selector, l), nil
	}
	return a.external(l), nil
}

func (a metricsAPI) load(namespace string) (l load, err error) {
	o, err := a.w.Client.Tracker().Get(corev1.SchemeGroupVersion.WithResource("configmaps"), namespace, loadName)
	if err == nil {
		err = json.Unmarshal([]byte(o.(*corev1.ConfigMap).Data[loadName]), &l)
	}
	return l, err
}

func (a metricsAPI) scale(r *http.Request, namespace string, l load) (any, error) {
	deployments := a.w.Client.AppsV1().Deployments(namespace)
	d, err := deployments.Get(context.Background(), targetName, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	s := &autoscalingv1.Scale{TypeMeta: metav1.TypeMeta{APIVersion: "autoscaling/v1", Kind: "Scale"},
		ObjectMeta: metav1.ObjectMeta{Name: d.Name, Namespace: namespace, UID: d.UID, ResourceVersion: d.ResourceVersion},
		Spec:       autoscalingv1.ScaleSpec{Replicas: *d.Spec.Replicas},
		Status:     autoscalingv1.ScaleStatus{Replicas: d.Status.Replicas, Selector: metav1.FormatLabelSelector(d.Spec.Selector)}}
	if r.Method == http.MethodGet {
		return s, nil
	}
	resource := schema.GroupResource{Group: "apps", Resource: "deployments"}
	switch l.Scale {
	case "conflict":
		return nil, apierrors.NewConflict(resource, targetName, nil)
	case "forbidden":
		return nil, apierrors.NewForbidden(resource, targetName, fmt.Errorf("not now"))
	}
	if err := json.NewDecoder(r.Body).Decode(s); err != nil {
		return nil, err
	}
	d.Spec.Replicas, d.ResourceVersion = &s.Spec.Replicas, s.ResourceVersion
	_, err = deployments.Update(context.Background(), d, metav1.UpdateOptions{})
	return s, err
}

// sampled calls f for each pod that a selector chooses and that has a sample, with its place.
func (a metricsAPI) sampled(namespace string, selector labels.Selector, l load, group string, f func(p *corev1.Pod, place int64)) {
	if slices.Contains(l.Empty, group) {
		return
	}
	for _, p := range a.w.Pods(namespace) {
		place := 0
		_, err := fmt.Sscanf(p.Name, "p-%d", &place)
		if err == nil && !slices.Contains(l.Missing, place) && selector.Matches(labels.Set(p.Labels)) {
			f(&p, int64(place))
		}
	}
}

func (l load) at() metav1.Time {
	return metav1.NewTime(time.Now().Add(-time.Duration(l.AgeSeconds) * time.Second))
}

func (a metricsAPI) resources(namespace string, selector labels.Selector, l load) any {
	list := &metrics.PodMetricsList{TypeMeta: metav1.TypeMeta{APIVersion: "metrics.k8s.io/v1beta1", Kind: "PodMetricsList"}}
	a.sampled(namespace, selector, l, metrics.GroupName, func(p *corev1.Pod, place int64) {
		m := metrics.PodMetrics{ObjectMeta: metav1.ObjectMeta{Name: p.Name, Namespace: namespace}, Timestamp: l.at(), Window: metav1.Duration{Duration: 30 * time.Second}}
		for _, c := range slices.Concat(p.Spec.Containers, p.Spec.InitContainers) {
			used := *resource.NewMilliQuantity(l.Use+7*place, resource.DecimalSI)
			usage := corev1.ResourceList{corev1.ResourceCPU: used}
			if place != 3 {
				usage[corev1.ResourceMemory] = *resource.NewQuantity(used.MilliValue(), resource.BinarySI)
			}
			m.Containers = append(m.Containers, metrics.ContainerMetrics{Name: c.Name, Usage: usage})
		}
		list.Items = append(list.Items, m)
	})
	return list
}

// custom answers for all pods (pods/*/METRIC), or one object.
func (a metricsAPI) custom(namespace string, path []string, selector labels.Selector, l load) any {
	list := &custommetrics.MetricValueList{TypeMeta: metav1.TypeMeta{APIVersion: "custom.metrics.k8s.io/v1beta2", Kind: "MetricValueList"}}
	add := func(name string, value int64) {
		list.Items = append(list.Items, custommetrics.MetricValue{DescribedObject: corev1.ObjectReference{Name: name}, Timestamp: l.at(),
			Value: *resource.NewMilliQuantity(value, resource.DecimalSI)})
	}
	if path[0] != "pods" {
		add("s", l.Value)
		return list
	}
	a.sampled(namespace, selector, l, custommetrics.GroupName, func(p *corev1.Pod, place int64) { add(p.Name, l.Use+7*place) })
	return list
}

func (a metricsAPI) external(l load) any {
	list := &externalmetrics.ExternalMetricValueList{TypeMeta: metav1.TypeMeta{APIVersion: "external.metrics.k8s.io/v1beta1", Kind: "ExternalMetricValueList"}}
	for i := range l.External {
		if !slices.Contains(l.Empty, externalmetrics.GroupName) {
			list.Items = append(list.Items, externalmetrics.ExternalMetricValue{Timestamp: l.at(),
				Value: *resource.NewMilliQuantity(l.Value/int64(1+i), resource.DecimalSI)})
		}
	}
	return list
}

// served is what discovery tells of the API.
func served(w *reconciletest.World) discovery.DiscoveryInterface {
	list := func(version string, all ...metav1.APIResource) *metav1.APIResourceList {
		return &metav1.APIResourceList{GroupVersion: version, APIResources: all}
	}
	of := func(name, kind string) metav1.APIResource {
		return metav1.APIResource{Name: name, Kind: kind, Namespaced: true}
	}
	scale := of("deployments/scale", "Scale")
	scale.Group, scale.Version = "autoscaling", "v1"
	w.Client.Resources = []*metav1.APIResourceList{
		list("v1", of("pods", "Pod"), of("services", "Service"), of("configmaps", "ConfigMap"), metav1.APIResource{Name: "namespaces", Kind: "Namespace"}),
		list("apps/v1", of("deployments", "Deployment"), scale),
		list("custom.metrics.k8s.io/v1beta2", of("pods/requests", "MetricValueList")),
	}
	return w.Client.Discovery().(*fakediscovery.FakeDiscovery)
}

func metricsConfig(w *reconciletest.World) *restclient.Config {
	return &restclient.Config{Host: "http://api", Transport: metricsAPI{w}, QPS: -1}
}

// ourAutoscaler is our side, which reads scales and metrics by its own clients.
func ourAutoscaler() side {
	return side{"setpoint", func(_ context.Context, _ *testing.T, w *reconciletest.World) {
		env := w.Env()
		env.REST, env.Discovery = metricsConfig(w), served(w)
		w.RunIn(env, podautoscaler.New())
	}}
}

// What upstream's controller manager gives the controller by default.
const (
	autoscalerPeriod       = 15 * time.Second
	downscaleStabilization = 5 * time.Minute
	autoscalerTolerance    = 0.1
	cpuInitialization      = 5 * time.Minute
	initialReadiness       = 30 * time.Second
)

func upstreamAutoscaler(ctx context.Context, w *reconciletest.World) (func(context.Context, int), error) {
	cfg, known := metricsConfig(w), served(w)
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(known))
	scales, err := scale.NewForConfig(cfg, mapper, dynamic.LegacyAPIPathResolverFunc, scale.NewDiscoveryScaleKindResolver(known))
	if err != nil {
		return nil, err
	}
	all := upstreammetrics.NewRESTMetricsClient(resourceclient.NewForConfigOrDie(cfg),
		customclient.NewForConfig(cfg, mapper, customclient.NewAvailableAPIsGetter(known)), externalclient.NewForConfigOrDie(cfg))
	c := upstreamautoscaler.NewHorizontalController(klog.NewContext(ctx, klog.Background()), fake.NewSimpleClientset().CoreV1(), scales,
		w.Client.AutoscalingV2(), mapper, all, w.Informers.Autoscaling().V2().HorizontalPodAutoscalers(), w.Informers.Core().V1().Pods(),
		autoscalerPeriod, downscaleStabilization, autoscalerTolerance, cpuInitialization, initialReadiness)
	return c.Run, nil
}
