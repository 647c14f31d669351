package optional

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/api/imagepolicy/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/setpoint-io/setpoint/apiserver/admission/choice"
)

var jane = &user.DefaultInfo{Name: "jane"}

// world is what plugins are made with in tests.
type world struct {
	text        string
	annotations map[string]string // of every namespace
	allowed     []string          // "verb resource/subresource name", "*" for any name
	clock       *testingclock.FakeClock
}

func (w world) plugin(t *testing.T, name string) admission.Interface {
	t.Helper()
	made, err := w.make(name)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func (w world) make(name string) (admission.Interface, error) {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "ReplicaSet"}, meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "Node"}, meta.RESTScopeRoot)
	c := Config{
		Authorizer: authorizer.AuthorizerFunc(w.judge), Mapper: mapper,
		Configuration: func(string) []byte { return []byte(w.text) },
		Namespace: func(_ context.Context, name string) (*corev1.Namespace, error) {
			return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: w.annotations}}, nil
		},
	}
	if w.clock != nil {
		c.Clock = w.clock
	}
	made, err := New(c, []string{name})
	return made[name], err
}

func (w world) judge(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	asked := strings.TrimSuffix(fmt.Sprintf("%s %s/%s", a.GetVerb(), a.GetResource(), a.GetSubresource()), "/") + " " + a.GetNamespace() + "/" + a.GetName()
	if slices.Contains(w.allowed, asked) {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "not " + asked, nil
}

// request is what a plugin is asked: with an old object a change, else a creation.
type request struct {
	obj, old    runtime.Object
	resource    schema.GroupVersionResource
	subresource string
	dryRun      bool
}

func (r request) attributes() admission.Attributes {
	op := admission.Create
	if r.old != nil {
		op = admission.Update
	}
	if r.resource.Resource == "" {
		r.resource = corev1.SchemeGroupVersion.WithResource("pods")
	}
	return admission.NewAttributesRecord(r.obj, r.old, schema.GroupVersionKind{}, "team", "x", r.resource, r.subresource, op, nil, r.dryRun, jane)
}

// admit runs both halves of a plugin, as the chain does.
func admit(t *testing.T, plugin admission.Interface, r request) error {
	t.Helper()
	a := r.attributes()
	if !plugin.Handles(a.GetOperation()) {
		return nil
	}
	if m, ok := plugin.(admission.MutationInterface); ok {
		if err := m.Admit(t.Context(), a, nil); err != nil {
			return err
		}
	}
	if v, ok := plugin.(admission.ValidationInterface); ok {
		return v.Validate(t.Context(), a, nil)
	}
	return nil
}

// check compares a refusal with the words that a user must read; none means admitted.
func check(t *testing.T, err error, words string) {
	t.Helper()
	if (err != nil) != (words != "") || err != nil && !strings.Contains(err.Error(), words) {
		t.Errorf("it says %v, want %q", err, words)
	}
}

// TestEveryOptionalPlugin: what choice says may be enabled is made here, and nothing else.
func TestEveryOptionalPlugin(t *testing.T) {
	left := len(makers)
	for _, p := range choice.All() {
		if may := p.Default == choice.Off && p.Missing == ""; may != (makers[p.Name] != nil) {
			t.Errorf("%s may be enabled: %v", p.Name, may)
		} else if may {
			left--
		}
	}
	if left != 0 {
		t.Errorf("%d plugins are made that choice does not know", left)
	}
	if _, err := New(Config{}, []string{"Nothing"}); err == nil {
		t.Error("a plugin was made that is not there")
	}
}

func TestAntiAffinity(t *testing.T) {
	plugin := world{}.plugin(t, "LimitPodHardAntiAffinityTopology")
	for key, words := range map[string]string{
		corev1.LabelHostname:     "",
		corev1.LabelTopologyZone: "has TopologyKey topology.kubernetes.io/zone but only key kubernetes.io/hostname is allowed",
	} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{Affinity: &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution:  []corev1.PodAffinityTerm{{TopologyKey: key}},
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{PodAffinityTerm: corev1.PodAffinityTerm{TopologyKey: "any"}}},
		}}}}
		check(t, admit(t, plugin, request{obj: pod}), words)
		check(t, admit(t, plugin, request{obj: pod, subresource: "status"}), "")
	}
	check(t, admit(t, plugin, request{obj: &corev1.Pod{}}), "")
}

func podWith(image string) *corev1.Pod {
	c := corev1.Container{Name: "c", Image: image, ImagePullPolicy: corev1.PullIfNotPresent}
	return &corev1.Pod{Spec: corev1.PodSpec{
		Containers: []corev1.Container{c}, InitContainers: []corev1.Container{c},
		Volumes: []corev1.Volume{{VolumeSource: corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: image}}}, {}},
	}}
}

func TestAlwaysPullImages(t *testing.T) {
	plugin := world{}.plugin(t, "AlwaysPullImages")
	pod := podWith("a")
	check(t, admit(t, plugin, request{obj: pod}), "")
	spec := pod.Spec
	if spec.Containers[0].ImagePullPolicy != "Always" || spec.InitContainers[0].ImagePullPolicy != "Always" || spec.Volumes[0].Image.PullPolicy != "Always" {
		t.Errorf("%+v", spec)
	}
	// What a plugin after this one undoes is refused.
	pod.Spec.InitContainers[0].ImagePullPolicy = corev1.PullNever
	err := plugin.(admission.ValidationInterface).Validate(t.Context(), request{obj: pod}.attributes(), nil)
	check(t, err, `spec.initContainers[0].imagePullPolicy: Unsupported value: "Never"`)
	// A pod that was there before changes as before, unless its image does.
	for image, want := range map[string]corev1.PullPolicy{"a": "IfNotPresent", "b": "Always"} {
		pod := podWith(image)
		check(t, admit(t, plugin, request{obj: pod, old: podWith("a")}), "")
		if got := pod.Spec.Containers[0].ImagePullPolicy; got != want {
			t.Errorf("%s: %s", image, got)
		}
	}
	// An ephemeral container comes by a subresource, which is passed over, as upstream.
	debugged := podWith("a")
	debugged.Spec.EphemeralContainers = []corev1.EphemeralContainer{
		{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "d", Image: "d", ImagePullPolicy: "IfNotPresent"}}}
	check(t, admit(t, plugin, request{obj: debugged, old: podWith("a"), subresource: "ephemeralcontainers"}), "")
	if got := debugged.Spec.EphemeralContainers[0].ImagePullPolicy; got != "IfNotPresent" {
		t.Errorf("an ephemeral container: %s", got)
	}
}

func TestExtendedResourceToleration(t *testing.T) {
	plugin := world{}.plugin(t, "ExtendedResourceToleration")
	asks := func(names ...corev1.ResourceName) corev1.Container {
		requests := corev1.ResourceList{}
		for _, name := range names {
			requests[name] = apiresource.MustParse("1")
		}
		return corev1.Container{Resources: corev1.ResourceRequirements{Requests: requests}}
	}
	pod := &corev1.Pod{Spec: corev1.PodSpec{
		Containers: []corev1.Container{asks("cpu", "example.com/b", "example.com/a")}, InitContainers: []corev1.Container{asks("example.com/a")},
		Tolerations: []corev1.Toleration{{Key: "example.com/b", Operator: "Equal", Value: "x", Effect: "NoSchedule"}},
	}}
	check(t, admit(t, plugin, request{obj: pod}), "")
	want := []corev1.Toleration{
		{Key: "example.com/b", Operator: "Equal", Value: "x", Effect: "NoSchedule"},
		{Key: "example.com/a", Operator: "Exists", Effect: "NoSchedule"}, {Key: "example.com/b", Operator: "Exists", Effect: "NoSchedule"},
	}
	if diff := cmp.Diff(want, pod.Spec.Tolerations); diff != "" {
		t.Error(diff)
	}
	check(t, admit(t, plugin, request{obj: pod}), "")
	if len(pod.Spec.Tolerations) != 3 {
		t.Errorf("a second time: %v", pod.Spec.Tolerations)
	}
}

func TestPodNodeSelector(t *testing.T) {
	const config = "podNodeSelectorPluginConfig:\n  clusterDefaultNodeSelector: env=prod\n  team: env=prod,disk=ssd\n"
	for name, tc := range map[string]struct {
		text        string
		annotations map[string]string
		has, want   map[string]string
		words       string
	}{
		"nothing":               {},
		"default":               {text: config, want: map[string]string{"env": "prod"}},
		"annotation":            {annotations: map[string]string{nodeSelectorAnnotation: "a=b"}, has: map[string]string{"c": "d"}, want: map[string]string{"a": "b", "c": "d"}},
		"empty annotation":      {text: config, annotations: map[string]string{nodeSelectorAnnotation: ""}},
		"conflict":              {text: config, has: map[string]string{"env": "test"}, words: "pod node label selector conflicts with its namespace node label selector"},
		"allowed":               {text: config, has: map[string]string{"disk": "ssd"}, want: map[string]string{"env": "prod", "disk": "ssd"}},
		"not allowed":           {text: config, has: map[string]string{"disk": "tape"}, words: "labels conflict with its namespace whitelist"},
		"wrong annotation":      {annotations: map[string]string{nodeSelectorAnnotation: "a in (b)"}, words: "annotation scheduler.alpha.kubernetes.io/node-selector of the namespace"},
		"not in the whitelist":  {text: config, has: map[string]string{"x": "y"}, words: "whitelist"},
		"annotation, whitelist": {text: config, annotations: map[string]string{nodeSelectorAnnotation: "a=b"}, words: "whitelist"},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{Spec: corev1.PodSpec{NodeSelector: tc.has}}
			check(t, admit(t, world{text: tc.text, annotations: tc.annotations}.plugin(t, "PodNodeSelector"), request{obj: pod}), tc.words)
			if tc.words != "" {
				return
			}
			if got := fmt.Sprint(pod.Spec.NodeSelector); got != fmt.Sprint(tc.want) {
				t.Errorf("%s, want %v", got, tc.want)
			}
		})
	}
	for text, words := range map[string]string{"podNodeSelectorPluginConfig: {a: 'b in c'}": "a: ", "other: {}": `unknown field "other"`} {
		_, err := world{text: text}.make("PodNodeSelector")
		check(t, err, words)
	}
}

const tolerationsHeader = "apiVersion: podtolerationrestriction.admission.k8s.io/v1alpha1\nkind: Configuration\n"

func TestPodTolerationRestriction(t *testing.T) {
	exists := func(key string) corev1.Toleration {
		return corev1.Toleration{Key: key, Operator: "Exists", Effect: "NoSchedule"}
	}
	memory := corev1.Toleration{Key: corev1.TaintNodeMemoryPressure, Operator: "Exists", Effect: "NoSchedule"}
	defaults := `[{"key":"a","operator":"Exists","effect":"NoSchedule"}]`
	for name, tc := range map[string]struct {
		text        string
		annotations map[string]string
		has, want   []corev1.Toleration
		burstable   bool
		words       string
	}{
		"nothing":              {},
		"of the namespace":     {annotations: map[string]string{defaultTolerations: defaults}, want: []corev1.Toleration{exists("a")}},
		"of the cluster":       {text: tolerationsHeader + "default: " + defaults, want: []corev1.Toleration{exists("a")}},
		"namespace says none":  {text: tolerationsHeader + "default: " + defaults, annotations: map[string]string{defaultTolerations: ""}},
		"merged":               {annotations: map[string]string{defaultTolerations: defaults}, has: []corev1.Toleration{{Key: "a", Operator: "Equal", Value: "1", Effect: "NoSchedule"}, exists("b")}, want: []corev1.Toleration{exists("b"), exists("a")}},
		"not best effort":      {burstable: true, want: []corev1.Toleration{memory}},
		"allowed":              {annotations: map[string]string{tolerationsWhitelist: defaults}, has: []corev1.Toleration{exists("a")}, want: []corev1.Toleration{exists("a")}},
		"forbidden":            {annotations: map[string]string{tolerationsWhitelist: defaults}, has: []corev1.Toleration{exists("b")}, words: "conflict with its namespace whitelist"},
		"forbidden by cluster": {text: tolerationsHeader + "whitelist: " + defaults, has: []corev1.Toleration{exists("b")}, words: "conflict with its cluster whitelist"},
		"an empty whitelist":   {text: tolerationsHeader + "whitelist: " + defaults, annotations: map[string]string{tolerationsWhitelist: ""}, has: []corev1.Toleration{exists("b")}, want: []corev1.Toleration{exists("b")}},
		"wrong annotation":     {annotations: map[string]string{defaultTolerations: "x"}, words: "annotation scheduler.alpha.kubernetes.io/defaultTolerations of the namespace"},
	} {
		t.Run(name, func(t *testing.T) {
			pod := podWith("a")
			pod.Spec.Tolerations = tc.has
			if tc.burstable {
				pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": apiresource.MustParse("1")}
			}
			check(t, admit(t, world{text: tc.text, annotations: tc.annotations}.plugin(t, "PodTolerationRestriction"), request{obj: pod}), tc.words)
			if diff := cmp.Diff(tc.want, pod.Spec.Tolerations); tc.words == "" && diff != "" {
				t.Error(diff)
			}
		})
	}
	_, err := world{text: "apiVersion: v1\nkind: Configuration\n"}.make("PodTolerationRestriction")
	check(t, err, "expected a Configuration of podtolerationrestriction.admission.k8s.io/v1alpha1, got Configuration of v1")
}

// TestCovers: one toleration covers another as upstream judges it.
func TestCovers(t *testing.T) {
	seconds := func(n int64) *int64 { return &n }
	for name, tc := range map[string]struct {
		wide, t corev1.Toleration
		want    bool
	}{
		"equal":          {corev1.Toleration{Key: "a"}, corev1.Toleration{Key: "a"}, true},
		"every key":      {corev1.Toleration{Operator: "Exists"}, corev1.Toleration{Key: "a", Operator: "Equal", Value: "b", Effect: "NoExecute"}, true},
		"another key":    {corev1.Toleration{Key: "b", Operator: "Exists"}, corev1.Toleration{Key: "a", Operator: "Exists"}, false},
		"another effect": {corev1.Toleration{Key: "a", Operator: "Exists", Effect: "NoSchedule"}, corev1.Toleration{Key: "a", Operator: "Exists", Effect: "NoExecute"}, false},
		"same value":     {corev1.Toleration{Key: "a", Value: "b"}, corev1.Toleration{Key: "a", Operator: "Equal", Value: "b"}, true},
		"another value":  {corev1.Toleration{Key: "a", Operator: "Equal", Value: "c"}, corev1.Toleration{Key: "a", Operator: "Equal", Value: "b"}, false},
		"longer":         {corev1.Toleration{Key: "a", Operator: "Exists", Effect: "NoExecute", TolerationSeconds: seconds(5)}, corev1.Toleration{Key: "a", Operator: "Exists", Effect: "NoExecute", TolerationSeconds: seconds(6)}, false},
		"for ever":       {corev1.Toleration{Key: "a", Operator: "Exists", Effect: "NoExecute", TolerationSeconds: seconds(5)}, corev1.Toleration{Key: "a", Operator: "Exists", Effect: "NoExecute"}, false},
	} {
		if got := covers(tc.wide, tc.t); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

const eventsHeader = "apiVersion: eventratelimit.admission.k8s.io/v1alpha1\nkind: Configuration\nlimits:\n"

func TestEventRateLimit(t *testing.T) {
	clock := testingclock.NewFakeClock(time.Unix(1, 0))
	plugin := world{text: eventsHeader + "- {type: Namespace, qps: 1, burst: 2}\n- {type: SourceAndObject, qps: 1, burst: 1}\n", clock: clock}.plugin(t, "EventRateLimit")
	event := func(name string) runtime.Object {
		return &corev1.Event{Source: corev1.EventSource{Component: "c"}, InvolvedObject: corev1.ObjectReference{Name: name}}
	}
	check(t, admit(t, plugin, request{obj: event("a"), dryRun: true}), "")
	check(t, admit(t, plugin, request{obj: event("a")}), "")
	check(t, admit(t, plugin, request{obj: event("a")}), "limit reached on type SourceAndObject for key ca")
	check(t, admit(t, plugin, request{obj: event("b")}), "limit reached on type Namespace for key team")
	check(t, admit(t, plugin, request{obj: podWith("a")}), "")
	clock.Step(time.Second)
	check(t, admit(t, plugin, request{obj: &eventsv1.Event{ReportingController: "d"}}), "")
	check(t, admit(t, plugin, request{obj: &eventsv1.Event{ReportingController: "d"}}),
		"limit reached on type Namespace for key team, limit reached on type SourceAndObject for key d")
}

func TestEventRateConfiguration(t *testing.T) {
	for text, words := range map[string]string{
		"": "limits: Required value",
		eventsHeader + "- {type: Pod, qps: 1, burst: 1}":                                                    `limits[0].type: Unsupported value: "Pod": supported values: "Namespace", "Server", "SourceAndObject", "User"`,
		eventsHeader + "- {type: User, burst: 1}":                                                           "limits[0].qps: Invalid value: 0: must be positive",
		eventsHeader + "- {type: User, qps: 1}":                                                             "limits[0].burst",
		eventsHeader + "- {type: User, qps: 1, burst: 1, cacheSize: -1}":                                    "limits[0].cacheSize",
		eventsHeader + "- {type: User, qps: 1, burst: 1, size: 1}":                                          `unknown field "size"`,
		eventsHeader + "- {type: Server, qps: 1, burst: 1}\n- {type: User, qps: 1, burst: 1, cacheSize: 9}": "",
	} {
		_, err := world{text: text, clock: testingclock.NewFakeClock(time.Unix(1, 0))}.make("EventRateLimit")
		check(t, err, words)
	}
}

func ownedBy(refs ...metav1.OwnerReference) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{OwnerReferences: refs}}
}

func TestOwnerReferences(t *testing.T) {
	yes := true
	plain := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "rs", UID: "1"}
	blocking, node, unknown := plain, plain, plain
	blocking.BlockOwnerDeletion = &yes
	node.APIVersion, node.Kind, node.Name, node.BlockOwnerDeletion = "v1", "Node", "n", &yes
	unknown.Kind, unknown.BlockOwnerDeletion = "Unknown", &yes
	maps := corev1.SchemeGroupVersion.WithResource("configmaps")
	for name, tc := range map[string]struct {
		allowed []string
		r       request
		words   string
	}{
		"created":                  {r: request{obj: ownedBy(plain), resource: maps}},
		"unchanged":                {r: request{obj: ownedBy(blocking), old: ownedBy(blocking), resource: maps}},
		"changed":                  {r: request{obj: ownedBy(plain), old: ownedBy(), resource: maps}, words: "cannot set an ownerRef on a resource you can't delete: not delete configmaps team/x"},
		"changed by who may":       {allowed: []string{"delete configmaps team/x"}, r: request{obj: ownedBy(plain), old: ownedBy(), resource: maps}},
		"blocking":                 {r: request{obj: ownedBy(blocking), resource: maps}, words: "you can't set finalizers on: not update replicasets/finalizers team/rs"},
		"blocking by who may":      {allowed: []string{"update replicasets/finalizers team/rs"}, r: request{obj: ownedBy(blocking), resource: maps}},
		"blocks a cluster's":       {allowed: []string{"update nodes/finalizers /n"}, r: request{obj: ownedBy(node), resource: maps}},
		"by who may all":           {allowed: []string{"update */finalizers /*"}, r: request{obj: ownedBy(unknown), resource: maps}},
		"an unknown kind":          {r: request{obj: ownedBy(unknown), resource: maps}, words: "cannot find RESTMapping for APIVersion apps/v1 Kind Unknown"},
		"blocks from now on":       {allowed: []string{"delete configmaps team/x"}, r: request{obj: ownedBy(blocking), old: ownedBy(plain), resource: maps}, words: "finalizers"},
		"blocked already":          {allowed: []string{"delete configmaps team/x"}, r: request{obj: ownedBy(blocking, plain), old: ownedBy(blocking), resource: maps}},
		"a pod's status":           {r: request{obj: ownedBy(plain), old: ownedBy(), subresource: "status"}},
		"an object without owners": {r: request{obj: &metav1.Status{}, resource: maps}},
	} {
		t.Run(name, func(t *testing.T) {
			check(t, admit(t, world{allowed: tc.allowed}.plugin(t, "OwnerReferencesPermissionEnforcement"), tc.r), tc.words)
		})
	}
}

// newImageServer allows images whose names begin with "good", and counts what it is asked.
func newImageServer(t *testing.T) (kubeconfig string, asked *int, server *httptest.Server) {
	t.Helper()
	asked = new(int)
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*asked++
		var review v1alpha1.ImageReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			t.Error(err)
		}
		review.Status = v1alpha1.ImageReviewStatus{Allowed: true, AuditAnnotations: map[string]string{"seen": "yes"}}
		for _, c := range review.Spec.Containers {
			if !strings.HasPrefix(c.Image, "good") {
				review.Status.Allowed, review.Status.Reason = false, review.Spec.Annotations["why.image-policy.k8s.io/x"]
			}
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(review); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{"apiVersion": "v1", "kind": "Config", "current-context": "c",
"contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
"clusters": [{"name": "c", "cluster": {"server": %q}}], "users": [{"name": "u", "user": {}}]}`, server.URL)
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return kubeconfig, asked, server
}

func TestImagePolicyWebhook(t *testing.T) {
	kubeconfig, asked, server := newImageServer(t)
	config := "imagePolicy: {kubeConfigFile: " + kubeconfig + ", retryBackoff: 1"
	plugin := world{text: config + "}"}.plugin(t, "ImagePolicyWebhook")
	check(t, admit(t, plugin, request{obj: podWith("good")}), "")
	check(t, admit(t, plugin, request{obj: podWith("good")}), "")
	if *asked != 1 {
		t.Errorf("asked %d times about the same", *asked)
	}
	bad := podWith("bad")
	check(t, admit(t, plugin, request{obj: bad}), "one or more images rejected by webhook backend")
	bad.Annotations = map[string]string{"why.image-policy.k8s.io/x": "too old", "other": "x"}
	check(t, admit(t, plugin, request{obj: bad}), "denied one or more images: too old")
	check(t, admit(t, plugin, request{obj: bad, subresource: "status"}), "")
	check(t, admit(t, plugin, request{obj: podWith("good"), subresource: "ephemeralcontainers"}), "")
	server.Close()
	check(t, admit(t, plugin, request{obj: podWith("good2")}), "connection refused")
	open := podWith("good2")
	check(t, admit(t, world{text: config + ", defaultAllow: true}"}.plugin(t, "ImagePolicyWebhook"), request{obj: open}), "")
	if open.Annotations[failedOpen] != "true" {
		t.Errorf("nobody is told that it was not judged: %v", open.Annotations)
	}
}

func TestImagePolicyConfiguration(t *testing.T) {
	kubeconfig, _, _ := newImageServer(t)
	for text, words := range map[string]string{
		"": "--admission-control-config-file must have its configuration",
		"imagePolicy: {kubeConfigFile: " + kubeconfig + ", allowTTL: -1, denyTTL: 1800, retryBackoff: 300000}": "",
		"imagePolicy: {kubeConfigFile: /nowhere}":                                                              "kubeConfigFile: ",
		"imagePolicy: {kubeConfigFile: " + kubeconfig + ", denyTTL: 1801}":                                     "denyTTL: 1801 must be -1 to 1800",
		"imagePolicy: {url: x}": `unknown field "url"`,
	} {
		_, err := world{text: text}.make("ImagePolicyWebhook")
		check(t, err, words)
	}
}
