package eviction

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const mi = 1 << 20

// container is one with a limit of ephemeral-storage, if there is one.
func container(name, limit string) corev1.Container {
	c := corev1.Container{Name: name}
	if limit != "" {
		c.Resources.Limits = corev1.ResourceList{corev1.ResourceEphemeralStorage: resource.MustParse(limit)}
	}
	return c
}

// podOf has containers and an emptyDir called data, with a limit if there is one.
func podOf(sizeLimit string, medium corev1.StorageMedium, containers ...corev1.Container) *corev1.Pod {
	dir := &corev1.EmptyDirVolumeSource{Medium: medium}
	if sizeLimit != "" {
		q := resource.MustParse(sizeLimit)
		dir.SizeLimit = &q
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p", UID: "u"},
		Spec: corev1.PodSpec{
			Containers: containers, Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: dir}}},
		},
	}
}

func TestWhichLimitAPodExceeds(t *testing.T) {
	data := func(bytes int64) Usage { return Usage{Volumes: map[string]Files{"data": {Bytes: bytes}}} }
	a := func(bytes int64) Usage { return Usage{Layers: map[string]Files{"a": {Bytes: bytes}}} }
	sidecar := podOf("", "", container("b", "9Mi"))
	always := corev1.ContainerRestartPolicyAlways
	sidecar.Spec.InitContainers = []corev1.Container{container("a", "1Mi"), container("once", "1Mi")}
	sidecar.Spec.InitContainers[0].RestartPolicy = &always
	const volume = `Usage of EmptyDir volume "data" exceeds the limit "1Mi". `
	for _, c := range []struct {
		name string
		pod  *corev1.Pod
		use  Usage
		want string
	}{
		{"at the volume's limit", podOf("1Mi", ""), data(mi), ""},
		{"above it", podOf("1Mi", ""), data(mi + 1), volume},
		{"in memory the kernel has refused", podOf("1Mi", corev1.StorageMediumMemory), data(2 * mi), ""},
		{"a limit of 0 is none", podOf("0", ""), data(mi), ""},
		{"no limit", podOf("", ""), data(mi), ""},
		{"the volume comes first", podOf("1Mi", "", container("a", "1Mi")), data(2 * mi), volume},
		{"a volume counts for the pod", podOf("", "", container("a", "1Mi")), data(mi + 1),
			"Pod ephemeral local storage usage exceeds the total limit of containers 1Mi. "},
		{"so does what is the pod's own", podOf("", "", container("a", "1Mi")), Usage{Other: Files{Bytes: mi + 1}},
			"Pod ephemeral local storage usage exceeds the total limit of containers 1Mi. "},
		{"at the pod's limit", podOf("", "", container("a", "1Mi")), a(mi), ""},
		{"limits add up", podOf("", "", container("a", "1Mi"), container("b", "1Mi")), a(mi), ""},
		{"one container above its own", podOf("", "", container("a", "1Mi"), container("b", "1Mi")), a(mi + 1),
			`Container a exceeded its local ephemeral storage limit "1Mi". `},
		{"a sidecar above its own", sidecar, a(mi + 1), `Container a exceeded its local ephemeral storage limit "1Mi". `},
		{"an init container is measured with the pod only", sidecar, Usage{Layers: map[string]Files{"once": {Bytes: 2 * mi}}}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := overLimit(c.pod, c.use); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if c.want != "" && !limited(c.pod) {
				t.Error("it would not be measured")
			}
		})
	}
}

func TestWhichPodsAreCritical(t *testing.T) {
	annotated := func(key, value string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{key: value}}}
	}
	of := func(priority int32) *corev1.Pod { return &corev1.Pod{Spec: corev1.PodSpec{Priority: &priority}} }
	for _, c := range []struct {
		name string
		pod  *corev1.Pod
		want bool
	}{
		{"plain", &corev1.Pod{}, false},
		{"from the API", annotated("kubernetes.io/config.source", "api"), false},
		{"from a file", annotated("kubernetes.io/config.source", "file"), true},
		{"a mirror", annotated(corev1.MirrorPodAnnotationKey, "x"), true},
		{"system-cluster-critical", of(2_000_000_000), true},
		{"the highest a user may have", of(1_000_000_000), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := critical(c.pod); got != c.want {
				t.Errorf("critical: %v, want %v", got, c.want)
			}
		})
	}
}
