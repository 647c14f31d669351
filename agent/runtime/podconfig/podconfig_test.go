package podconfig

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

type shelf struct{ services []*corev1.Service }

func (s shelf) ConfigMap(_ context.Context, _, name string) (*corev1.ConfigMap, error) {
	if name != "cm" {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, name)
	}
	return &corev1.ConfigMap{Data: map[string]string{"k": "v", "two words": "w", "has=": "no"}}, nil
}

func (s shelf) Secret(_ context.Context, _, name string) (*corev1.Secret, error) {
	if name != "s" {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, name)
	}
	return &corev1.Secret{Data: map[string][]byte{"pw": []byte("x")}}, nil
}

func (s shelf) Services(_ context.Context, namespace string) ([]*corev1.Service, error) {
	var out []*corev1.Service
	for _, svc := range s.services {
		if svc.Namespace == namespace {
			out = append(out, svc)
		}
	}
	return out, nil
}

func TestExpand(t *testing.T) {
	values := map[string]string{"A": "1", "EMPTY": "", "REF": "$(A)"}
	for in, want := range map[string]string{
		"plain": "plain", "$(A)": "1", "x$(A)y$(A)": "x1y1", "$(EMPTY)": "", "$(NOPE)": "$(NOPE)", "$$(A)": "$(A)", "$$$(A)": "$1",
		"$(REF)": "$(A)", "$": "$", "$x": "$x", "$(A": "$(A", "": "", "$$": "$",
	} {
		if got := Expand(in, values); got != want {
			t.Errorf("Expand(%q) = %q, want %q", in, got, want)
		}
	}
}

func testPod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "u", Labels: map[string]string{"app": "web"}, Annotations: map[string]string{"note": "n"}},
		Spec: corev1.PodSpec{NodeName: "n1", ServiceAccountName: "sa", Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m"), corev1.ResourceMemory: resource.MustParse("64Mi")},
			Limits:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1500m")},
		}}}},
	}
}

func envInput(services ...*corev1.Service) EnvInput {
	return EnvInput{Pod: testPod(), Objects: shelf{services}, PodIPs: []string{"10.42.0.5", "fd00::5"}, HostIPs: []string{"192.0.2.1"},
		Allocatable: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("8Gi")}}
}

// envOf renders the environment as name=value lines.
func envOf(t *testing.T, in EnvInput, c *corev1.Container) (map[string]string, error) {
	t.Helper()
	list, err := Env(t.Context(), in, c)
	out := map[string]string{}
	for _, kv := range list {
		out[kv.Key] = string(kv.Value)
	}
	return out, err
}

func fieldVar(name, path string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}}
}

func TestEnvSources(t *testing.T) {
	yes := true
	key := func(cm, k string, optional *bool) corev1.EnvVar {
		return corev1.EnvVar{Name: "V", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: cm}, Key: k, Optional: optional}}}
	}
	secret := func(s, k string) corev1.EnvVar {
		return corev1.EnvVar{Name: "V", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: s}, Key: k}}}
	}
	amount := func(res, divisor string) corev1.EnvVar {
		return corev1.EnvVar{Name: "V", ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: res, Divisor: resource.MustParse(divisor)}}}
	}
	for _, tc := range []struct {
		name string
		v    corev1.EnvVar
		want string
		err  string
	}{
		{"value", corev1.EnvVar{Name: "V", Value: "x"}, "x", ""},
		{"config map", key("cm", "k", nil), "v", ""},
		{"missing map", key("nope", "k", nil), "", `configmap "nope" not found`},
		{"missing key", key("cm", "nope", nil), "", "couldn't find key nope in ConfigMap ns/cm"},
		{"optional map", key("nope", "k", &yes), "", ""},
		{"optional key", key("cm", "nope", &yes), "", ""},
		{"secret", secret("s", "pw"), "x", ""},
		{"missing secret", secret("nope", "pw"), "", `secret "nope" not found`},
		{"missing secret key", secret("s", "nope"), "", "couldn't find key nope in Secret ns/s"},
		{"name", fieldVar("V", "metadata.name"), "p", ""},
		{"label", fieldVar("V", "metadata.labels['app']"), "web", ""},
		{"annotation", fieldVar("V", "metadata.annotations['note']"), "n", ""},
		{"node", fieldVar("V", "spec.nodeName"), "n1", ""},
		{"account", fieldVar("V", "spec.serviceAccountName"), "sa", ""},
		{"pod ip", fieldVar("V", "status.podIP"), "10.42.0.5", ""},
		{"pod ips", fieldVar("V", "status.podIPs"), "10.42.0.5,fd00::5", ""},
		{"host ip", fieldVar("V", "status.hostIP"), "192.0.2.1", ""},
		{"unknown field", fieldVar("V", "status.phase"), "", "unsupported fieldPath: status.phase"},
		{"cpu limit rounds up", amount("limits.cpu", "1"), "2", ""},
		{"cpu in milli", amount("requests.cpu", "1m"), "250", ""},
		{"memory", amount("requests.memory", "1Mi"), "64", ""},
		{"no limit is the node's", amount("limits.memory", "1Gi"), "8", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			in := envInput()
			c := &in.Pod.Spec.Containers[0]
			c.Env = []corev1.EnvVar{tc.v}
			got, err := envOf(t, in, c)
			if tc.err != "" {
				if _, ok := errors.AsType[*ConfigError](err); !ok || !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("err = %v, want a ConfigError with %q", err, tc.err)
				}
				return
			}
			if err != nil || got["V"] != tc.want {
				t.Errorf("V = %q, %v; want %q", got["V"], err, tc.want)
			}
		})
	}
}

func TestEnvOrderAndExpansion(t *testing.T) {
	in := envInput(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "my-db"},
		Spec: corev1.ServiceSpec{ClusterIP: "10.96.0.9", Ports: []corev1.ServicePort{{Name: "pg", Port: 5432, Protocol: corev1.ProtocolTCP}}}})
	c := &in.Pod.Spec.Containers[0]
	c.EnvFrom = []corev1.EnvFromSource{{Prefix: "CM_", ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "cm"}}}}
	c.Env = []corev1.EnvVar{
		{Name: "DB", Value: "$(MY_DB_SERVICE_HOST):$(MY_DB_SERVICE_PORT)"}, {Name: "K", Value: "$(CM_k)!"},
		{Name: "LATER", Value: "$(AFTER)"}, {Name: "AFTER", Value: "y"}, {Name: "MY_DB_SERVICE_PORT", Value: "mine"},
	}
	got, err := envOf(t, in, c)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"CM_k": "v", "CM_two words": "w", "DB": "10.96.0.9:5432", "K": "v!", "LATER": "$(AFTER)", "AFTER": "y",
		"MY_DB_SERVICE_HOST": "10.96.0.9", "MY_DB_SERVICE_PORT": "mine", "MY_DB_SERVICE_PORT_PG": "5432", "MY_DB_PORT": "tcp://10.96.0.9:5432",
		"MY_DB_PORT_5432_TCP": "tcp://10.96.0.9:5432", "MY_DB_PORT_5432_TCP_PROTO": "tcp", "MY_DB_PORT_5432_TCP_PORT": "5432", "MY_DB_PORT_5432_TCP_ADDR": "10.96.0.9",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestServiceLinksCanBeOff(t *testing.T) {
	no := false
	service := func(ns, name string) *corev1.Service {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Spec: corev1.ServiceSpec{ClusterIP: "10.96.0.1", Ports: []corev1.ServicePort{{Port: 443}}}}
	}
	in := envInput(service("default", "kubernetes"), service("ns", "other"), service("default", "elsewhere"))
	in.Pod.Spec.EnableServiceLinks = &no
	got, err := envOf(t, in, &in.Pod.Spec.Containers[0])
	if err != nil || got["KUBERNETES_SERVICE_HOST"] != "10.96.0.1" || got["OTHER_SERVICE_HOST"] != "" || got["ELSEWHERE_SERVICE_HOST"] != "" {
		t.Errorf("%v %v", got, err)
	}
}

func TestResources(t *testing.T) {
	p := testPod()
	node := corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi"), "hugepages-2Mi": resource.MustParse("0")}
	got := Resources(p, &p.Spec.Containers[0], Node{Allocatable: node})
	want := &runtimeapi.LinuxContainerResources{CpuShares: 256, CpuPeriod: 100000, CpuQuota: 150000, OomScoreAdj: 1000 - 62}
	if got.CpuShares != want.CpuShares || got.CpuPeriod != want.CpuPeriod || got.CpuQuota != want.CpuQuota || got.OomScoreAdj != want.OomScoreAdj {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if !strings.HasPrefix(CgroupParent(p), "/kubepods/burstable/pod") {
		t.Errorf("cgroup %s", CgroupParent(p))
	}
	short := Resources(p, &p.Spec.Containers[0], Node{QuotaPeriod: 20 * time.Millisecond})
	if short.CpuPeriod != 20000 || short.CpuQuota != 30000 {
		t.Errorf("with a period of the node: %+v", short)
	}
	p.Spec.Containers[0].Resources = corev1.ResourceRequirements{}
	if len(got.HugepageLimits) != 1 || got.HugepageLimits[0].Limit != 0 {
		t.Errorf("huge pages that it does not ask for: %v", got.HugepageLimits)
	}
	if got := Resources(p, &p.Spec.Containers[0], Node{Allocatable: node}); got.CpuShares != sharesMin || got.OomScoreAdj != 1000 || got.CpuQuota != 0 {
		t.Errorf("best effort: %+v", got)
	}
}

func TestRunAsNonRoot(t *testing.T) {
	yes, root, user := true, int64(0), int64(1000)
	for _, tc := range []struct {
		name  string
		user  *int64
		image *runtimeapi.Image
		ok    bool
	}{
		{"root by spec", &root, &runtimeapi.Image{}, false},
		{"user by spec", &user, &runtimeapi.Image{}, true},
		{"root by image", nil, &runtimeapi.Image{}, false},
		{"user by image", nil, &runtimeapi.Image{Uid: &runtimeapi.Int64Value{Value: 5}}, true},
		{"name by image", nil, &runtimeapi.Image{Username: "nobody"}, false},
	} {
		p := testPod()
		p.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsNonRoot: &yes, RunAsUser: tc.user}
		if err := checkNonRoot(p, &p.Spec.Containers[0], tc.image); (err == nil) != tc.ok {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
}

func TestContainerSecurityOverridesThePod(t *testing.T) {
	podUser, own, group, no, yes := int64(1), int64(2), int64(3), false, true
	p := testPod()
	p.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsUser: &podUser, RunAsGroup: &group, FSGroup: &group, SupplementalGroups: []int64{9}}
	p.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{RunAsUser: &own, AllowPrivilegeEscalation: &no, ReadOnlyRootFilesystem: &yes,
		Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"net_admin"}, Drop: []corev1.Capability{"ALL"}}}
	got := securityOf(p)
	if got.RunAsUser.Value != 2 || got.RunAsGroup.Value != 3 || !got.NoNewPrivs || !got.ReadonlyRootfs ||
		!cmp.Equal(got.SupplementalGroups, []int64{9, 3}) || got.Capabilities.AddCapabilities[0] != "NET_ADMIN" {
		t.Errorf("%+v", got)
	}
}

func TestHostname(t *testing.T) {
	p := testPod()
	p.Name = strings.Repeat("a", 62) + "-b"
	if got := Hostname(p); got != strings.Repeat("a", 62) {
		t.Errorf("a long name becomes %q", got)
	}
	p.Spec.Hostname = "web-0"
	if got := Hostname(p); got != "web-0" {
		t.Errorf("hostname = %q", got)
	}
}

func TestHashFollowsTheImageOnly(t *testing.T) {
	a, b := &corev1.Container{Name: "c", Image: "v1"}, &corev1.Container{Name: "c", Image: "v1", Args: []string{"x"}}
	if Hash(a) != Hash(b) {
		t.Error("only the image can change in a running pod")
	}
	if b.Image = "v2"; Hash(a) == Hash(b) {
		t.Error("a new image needs a new hash")
	}
}

func TestCheckSysctls(t *testing.T) {
	tests := []struct {
		name             string
		hostNet, hostIPC bool
		want             string
	}{
		{name: "net.ipv4.ip_unprivileged_port_start"},
		{name: "net/ipv4/tcp_syncookies"},
		{name: "kernel.shm_rmid_forced", hostNet: true},
		{name: "net.ipv4.tcp_rmem", hostIPC: true},
		{name: "kernel.shm_rmid_forced", hostIPC: true, want: `forbidden sysctl: "kernel.shm_rmid_forced" not allowed with host IPC enabled`},
		{name: "net/ipv4/tcp_rmem", hostNet: true, want: `forbidden sysctl: "net.ipv4.tcp_rmem" not allowed with host Net enabled`},
		{name: "kernel.core_pattern", want: `forbidden sysctl: "kernel.core_pattern" not allowlisted`},
		{name: "kernel.msgmax", want: `forbidden sysctl: "kernel.msgmax" not allowlisted`},
		{name: "net.ipv4.ip_forward", want: `forbidden sysctl: "net.ipv4.ip_forward" not allowlisted`},
	}
	for _, test := range tests {
		pod := &corev1.Pod{Spec: corev1.PodSpec{HostNetwork: test.hostNet, HostIPC: test.hostIPC, SecurityContext: &corev1.PodSecurityContext{
			Sysctls: []corev1.Sysctl{{Name: test.name, Value: "1"}}}}}
		got := ""
		if err := CheckSysctls(pod, nil); err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%+v: %q", test, got)
		}
	}
}
