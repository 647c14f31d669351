package admission

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestPodsAreCompleted(t *testing.T) {
	account := &corev1.ServiceAccount{ObjectMeta: inNS("default"), ImagePullSecrets: []corev1.LocalObjectReference{{Name: "pull"}}}
	w := newWorld(t, allowAll, &corev1.Namespace{ObjectMeta: named("ns")}, account)
	pod := podNamed("p", func(p *corev1.Pod) { p.Spec.InitContainers = []corev1.Container{{Name: "i"}} })
	if err := w.admit(t, request{obj: pod}); err != nil {
		t.Fatal(err)
	}
	s := pod.Spec
	if s.ServiceAccountName != "default" || s.DeprecatedServiceAccount != "default" || *s.Priority != 0 || *s.PreemptionPolicy != corev1.PreemptLowerPriority {
		t.Errorf("spec = %+v", s)
	}
	if len(s.Tolerations) != 2 || *s.Tolerations[0].TolerationSeconds != 300 {
		t.Errorf("tolerations = %+v", s.Tolerations)
	}
	if len(s.ImagePullSecrets) != 1 || s.ImagePullSecrets[0].Name != "pull" {
		t.Errorf("imagePullSecrets = %v", s.ImagePullSecrets)
	}
	if len(s.Volumes) != 1 || !strings.HasPrefix(s.Volumes[0].Name, "kube-api-access-") || len(s.Volumes[0].Projected.Sources) != 3 {
		t.Fatalf("volumes = %+v", s.Volumes)
	}
	for _, c := range []corev1.Container{s.Containers[0], s.InitContainers[0]} {
		if len(c.VolumeMounts) != 1 || c.VolumeMounts[0].Name != s.Volumes[0].Name || c.VolumeMounts[0].MountPath != tokenMountPath || !c.VolumeMounts[0].ReadOnly {
			t.Errorf("%s: mounts = %+v", c.Name, c.VolumeMounts)
		}
	}
	again := pod.DeepCopy()
	if err := w.admit(t, request{obj: again}); err != nil || len(again.Spec.Volumes) != 1 || len(again.Spec.Containers[0].VolumeMounts) != 1 {
		t.Errorf("a second time: %v, volumes %v", err, again.Spec.Volumes)
	}
}

func TestNewTolerationsAreCompletedToo(t *testing.T) {
	w := newWorld(t, allowAll, withNamespace(&corev1.ServiceAccount{ObjectMeta: inNS("default")})...)
	old, pod := podNamed("p"), podNamed("p", func(p *corev1.Pod) {
		p.Spec.Tolerations = []corev1.Toleration{{Key: "mine", Operator: corev1.TolerationOpExists}}
	})
	if err := w.admit(t, request{obj: pod, old: old}); err != nil {
		t.Fatal(err)
	}
	if got := pod.Spec.Tolerations; len(got) != 3 || got[0].Key != "mine" || got[1].Key != corev1.TaintNodeNotReady || got[2].Key != corev1.TaintNodeUnreachable {
		t.Errorf("tolerations = %+v", got)
	}
}

func TestWhatAPodSaysIsKept(t *testing.T) {
	w := newWorld(t, allowAll, withNamespace(&corev1.ServiceAccount{ObjectMeta: inNS("robot"), AutomountServiceAccountToken: new(false)})...)
	pod := podNamed("p", func(p *corev1.Pod) {
		p.Spec.ServiceAccountName = "robot"
		p.Spec.Tolerations = []corev1.Toleration{{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(5))}}
	})
	if err := w.admit(t, request{obj: pod}); err != nil {
		t.Fatal(err)
	}
	if pod.Spec.ServiceAccountName != "robot" || len(pod.Spec.Tolerations) != 2 || *pod.Spec.Tolerations[0].TolerationSeconds != 5 || len(pod.Spec.Volumes) != 0 {
		t.Errorf("spec = %+v", pod.Spec)
	}
	mounted := podNamed("q", func(p *corev1.Pod) {
		p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "own", MountPath: tokenMountPath}}
	})
	if err := w.admit(t, request{obj: mounted}); err != nil || len(mounted.Spec.Volumes) != 0 {
		t.Errorf("%v, volumes = %v", err, mounted.Spec.Volumes)
	}
}

func secretEnv(secret string) corev1.EnvVar {
	return corev1.EnvVar{Name: "E", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: secret}}}}
}

func TestServiceAccount(t *testing.T) {
	mirror := func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"} }
	narrow := func(p *corev1.Pod) { p.Spec.ServiceAccountName = "narrow" }
	given := withNamespace(&corev1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{Name: "narrow", Namespace: "ns", Annotations: map[string]string{enforceMountableSecrets: "true"}},
		Secrets:    []corev1.ObjectReference{{Name: "mine"}}, ImagePullSecrets: []corev1.LocalObjectReference{{Name: "pull"}},
	})
	secret := func(name string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: name}}}}
		}
	}
	for name, c := range map[string]struct {
		edit []func(*corev1.Pod)
		want string
	}{
		"missing account": {[]func(*corev1.Pod){func(p *corev1.Pod) { p.Spec.ServiceAccountName = "none" }},
			`pods "p" is forbidden: error looking up service account ns/none: serviceaccount "none" not found`},
		"listed secret": {[]func(*corev1.Pod){narrow, secret("mine")}, ""},
		"other volume":  {[]func(*corev1.Pod){narrow, secret("other")}, `volume with secret.secretName="other" is not allowed because service account narrow does not reference that secret`},
		"other variable": {[]func(*corev1.Pod){narrow, func(p *corev1.Pod) { p.Spec.Containers[0].Env = []corev1.EnvVar{secretEnv("other")} }},
			`container c with envVar E referencing secret.secretName="other" is not allowed because service account narrow does not reference that secret`},
		"other pull secret": {[]func(*corev1.Pod){narrow, func(p *corev1.Pod) { p.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "x"}} }},
			`imagePullSecrets[0].name="x" is not allowed because service account narrow does not reference that imagePullSecret`},
		"mirror":              {[]func(*corev1.Pod){mirror}, ""},
		"mirror with account": {[]func(*corev1.Pod){mirror, narrow}, "a mirror pod may not reference service accounts"},
		"mirror with secret":  {[]func(*corev1.Pod){mirror, secret("mine")}, "a mirror pod may not reference secrets"},
		"mirror with env":     {[]func(*corev1.Pod){mirror, func(p *corev1.Pod) { p.Spec.Containers[0].Env = []corev1.EnvVar{secretEnv("s")} }}, "a mirror pod may not reference secrets"},
	} {
		t.Run(name, func(t *testing.T) {
			check(t, newWorld(t, allowAll, given...).admit(t, request{obj: podNamed("p", c.edit...)}), c.want)
		})
	}
}

func TestThePodOfANewNamespaceWaitsForItsAccount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, allowAll, &corev1.Namespace{ObjectMeta: named("ns")})
		go func() {
			time.Sleep(3 * defaultAccountInterval / 2)
			w.put(t, &corev1.ServiceAccount{ObjectMeta: inNS("default")})
		}()
		if err := w.admit(t, request{obj: podNamed("p")}); err != nil {
			t.Error(err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, allowAll, &corev1.Namespace{ObjectMeta: named("ns")})
		check(t, w.admit(t, request{obj: podNamed("p")}), `serviceaccount "default" not found`)
	})
}

func TestPriority(t *testing.T) {
	never := corev1.PreemptNever
	gold := &schedulingv1.PriorityClass{ObjectMeta: named("gold"), Value: 100, PreemptionPolicy: &never}
	silver := &schedulingv1.PriorityClass{ObjectMeta: named("silver"), Value: 7, GlobalDefault: true}
	for name, c := range map[string]struct {
		class   string
		set     *int32
		want    int32
		refusal string
	}{
		"default":        {want: 7},
		"node critical":  {class: "system-node-critical", want: 2000001000},
		"class":          {class: "gold", want: 100},
		"unknown class":  {class: "lead", refusal: "no PriorityClass with name lead was found"},
		"number by hand": {set: new(int32(9)), refusal: "the integer value of priority (9) must not be provided in pod spec; priority admission controller computed 7 from the given PriorityClass name"},
		"same number":    {class: "gold", set: new(int32(100)), want: 100},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, allowAll, withNamespace(gold, silver)...)
			pod := podNamed("p", func(p *corev1.Pod) { p.Spec.PriorityClassName, p.Spec.Priority = c.class, c.set })
			check(t, w.admit(t, request{obj: pod}), c.refusal)
			if c.refusal == "" && *pod.Spec.Priority != c.want {
				t.Errorf("priority = %d, want %d", *pod.Spec.Priority, c.want)
			}
			if c.class == "gold" && *pod.Spec.PreemptionPolicy != never {
				t.Errorf("preemption = %v", *pod.Spec.PreemptionPolicy)
			}
		})
	}
	w := newWorld(t, allowAll, silver)
	second := &schedulingv1.PriorityClass{ObjectMeta: named("second"), Value: 3, GlobalDefault: true}
	check(t, w.admit(t, request{obj: second}), "PriorityClass silver is already marked as default. Only one default can exist")
	check(t, w.admit(t, request{obj: silver, old: silver}), "")
}

func TestRuntimeClass(t *testing.T) {
	overhead := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m")}
	class := &nodev1.RuntimeClass{ObjectMeta: named("vm"), Handler: "vm", Overhead: &nodev1.Overhead{PodFixed: overhead},
		Scheduling: &nodev1.Scheduling{NodeSelector: map[string]string{"kvm": "yes"}, Tolerations: []corev1.Toleration{{Key: "vm", Operator: corev1.TolerationOpExists}}}}
	vm := func(p *corev1.Pod) { p.Spec.RuntimeClassName = new("vm") }
	for name, c := range map[string]struct {
		edit []func(*corev1.Pod)
		want string
	}{
		"completed": {[]func(*corev1.Pod){vm}, ""},
		"unknown":   {[]func(*corev1.Pod){func(p *corev1.Pod) { p.Spec.RuntimeClassName = new("x") }}, `pod rejected: RuntimeClass "x" not found`},
		"overhead by hand": {[]func(*corev1.Pod){func(p *corev1.Pod) { p.Spec.Overhead = overhead }},
			"pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"},
		"other overhead": {[]func(*corev1.Pod){vm, func(p *corev1.Pod) { p.Spec.Overhead = corev1.ResourceList{"cpu": resource.MustParse("1")} }},
			"pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"},
		"other node": {[]func(*corev1.Pod){vm, func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"kvm": "no"} }},
			"conflict: runtimeClass.scheduling.nodeSelector[kvm] = yes; pod.spec.nodeSelector[kvm] = no"},
	} {
		t.Run(name, func(t *testing.T) {
			pod := podNamed("p", c.edit...)
			check(t, newWorld(t, allowAll, withNamespace(class)...).admit(t, request{obj: pod}), c.want)
			if c.want == "" &&
				(pod.Spec.Overhead.Cpu().String() != "250m" || pod.Spec.NodeSelector["kvm"] != "yes" || pod.Spec.Tolerations[0].Key != "node.kubernetes.io/not-ready" || pod.Spec.Tolerations[2].Key != "vm") {
				t.Errorf("spec = %+v", pod.Spec)
			}
		})
	}
}

func TestTolerationsOfClassesAreMerged(t *testing.T) {
	all := corev1.Toleration{Operator: corev1.TolerationOpExists}
	one := corev1.Toleration{Key: "a", Operator: corev1.TolerationOpEqual, Value: "1"}
	short := corev1.Toleration{Key: "a", Effect: corev1.TaintEffectNoExecute, Operator: corev1.TolerationOpExists, TolerationSeconds: new(int64(1))}
	long := corev1.Toleration{Key: "a", Effect: corev1.TaintEffectNoExecute, Operator: corev1.TolerationOpExists, TolerationSeconds: new(int64(9))}
	for name, c := range map[string]struct {
		have []corev1.Toleration
		add  corev1.Toleration
		want int
	}{
		"covered by all":   {[]corev1.Toleration{all}, one, 1},
		"covers all":       {[]corev1.Toleration{one, short}, all, 1},
		"the longer wins":  {[]corev1.Toleration{short}, long, 1},
		"the longer stays": {[]corev1.Toleration{long}, short, 1},
		"both":             {[]corev1.Toleration{one}, corev1.Toleration{Key: "b", Operator: corev1.TolerationOpExists}, 2},
	} {
		if got := withToleration(c.have, c.add); len(got) != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestPodSecurity(t *testing.T) {
	labelled := func(mode string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", Labels: map[string]string{"pod-security.kubernetes.io/" + mode: "baseline"}}}
	}
	account := &corev1.ServiceAccount{ObjectMeta: inNS("default")}
	host := podNamed("p", func(p *corev1.Pod) { p.Spec.HostNetwork = true })
	check(t, newWorld(t, allowAll, labelled("enforce"), account).admit(t, request{obj: host.DeepCopy()}),
		`pods "p" is forbidden: violates PodSecurity "baseline:latest": host namespaces (hostNetwork=true)`)
	check(t, newWorld(t, allowAll, labelled("warn"), account).admit(t, request{obj: host.DeepCopy()}), "")
	check(t, newWorld(t, allowAll, labelled("enforce"), account).admit(t, request{obj: podNamed("p")}), "")
}

func TestTopologyLabels(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{corev1.LabelTopologyZone: "z1", corev1.LabelHostname: "n"}}}
	w := newWorld(t, allowAll, withNamespace(node)...)
	pod := podNamed("p", func(p *corev1.Pod) { p.Spec.NodeName = "n" })
	binding := &corev1.Binding{ObjectMeta: inNS("p"), Target: corev1.ObjectReference{Kind: "Node", Name: "n"}}
	if err := w.admit(t, request{obj: pod}); err != nil || pod.Labels[corev1.LabelTopologyZone] != "z1" || len(pod.Labels) != 1 {
		t.Errorf("%v, labels = %v", err, pod.Labels)
	}
	if err := w.admit(t, request{obj: binding, subresource: "binding"}); err != nil || binding.Labels[corev1.LabelTopologyZone] != "z1" {
		t.Errorf("%v, labels = %v", err, binding.Labels)
	}
}

func TestNamespaceLifecycle(t *testing.T) {
	going := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", DeletionTimestamp: &metav1.Time{Time: time.Unix(1, 0)}, Finalizers: []string{"x"}}}
	err := newWorld(t, allowAll, going).admit(t, request{obj: podNamed("p")})
	check(t, err, `pods "p" is forbidden: unable to create new content in namespace ns because it is being terminated`)
	if !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		t.Errorf("%v lacks the cause by which controllers give up", err)
	}
	w := newWorld(t, allowAll)
	err = w.admit(t, request{obj: podNamed("p")})
	check(t, err, `namespaces "ns" not found`)
	if !apierrors.IsNotFound(err) {
		t.Errorf("%v is no 404", err)
	}
	for _, name := range []string{"default", "kube-system", "kube-public"} {
		err := w.admit(t, request{old: &corev1.Namespace{ObjectMeta: named(name)}})
		check(t, err, "this namespace may not be deleted")
		if !apierrors.IsForbidden(err) {
			t.Errorf("%v is no 403", err)
		}
	}
	check(t, w.admit(t, request{old: &corev1.Namespace{ObjectMeta: named("other")}}), "")
	check(t, w.admit(t, request{old: podNamed("p")}), "")
}
