package agent

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	hugePageBytes = 2 << 20
	hugePagesFile = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"
	counted       = "counted"
)

// takeHugePages is a container that may have two pages, of which its volume has room for one.
func takeHugePages(how string) int {
	const access = unix.PROT_READ | unix.PROT_WRITE
	file, err := os.OpenFile("/huge/f", os.O_RDWR|os.O_CREATE, 0o600)
	if err == nil {
		err = file.Truncate(2 * hugePageBytes)
	}
	var inFile, free []byte
	if err == nil {
		inFile, err = unix.Mmap(int(file.Fd()), 0, hugePageBytes, access, unix.MAP_SHARED)
	}
	if err == nil {
		inFile[0] = 1
		if _, more := unix.Mmap(int(file.Fd()), hugePageBytes, hugePageBytes, access, unix.MAP_SHARED); more == nil {
			err = fmt.Errorf("the volume has more pages than its limit")
		}
	}
	const anonymous = unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_HUGETLB
	if err == nil {
		free, err = unix.Mmap(-1, 0, hugePageBytes, access, anonymous)
	}
	if err == nil {
		free[0] = 1
		if _, more := unix.Mmap(-1, 0, hugePageBytes, access, anonymous); more == nil && how == counted {
			err = fmt.Errorf("the container has more pages than its limit")
		}
	}
	if pages := os.Getenv("PAGES"); err == nil && pages != "2" {
		err = fmt.Errorf("PAGES is %q", pages)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// withHugePages is a pod that takes them and ends.
func withHugePages(node, how string) *corev1.Pod {
	grace, limit := int64(1), resource.MustParse("2Mi")
	two := corev1.ResourceList{"hugepages-2Mi": resource.MustParse("4Mi"), corev1.ResourceMemory: resource.MustParse("200Mi")}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "uid-web"},
		Spec: corev1.PodSpec{NodeName: node, RestartPolicy: corev1.RestartPolicyNever, TerminationGracePeriodSeconds: &grace,
			Volumes: []corev1.Volume{{Name: "h", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: "HugePages-2Mi", SizeLimit: &limit}}}},
			Containers: []corev1.Container{{Name: "c", Image: "setpoint.local/demo:v1", ImagePullPolicy: corev1.PullIfNotPresent,
				TerminationMessagePath: "/dev/termination-log", TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
				Command:      []string{"/setpoint", "hugepages", how},
				VolumeMounts: []corev1.VolumeMount{{Name: "h", MountPath: "/huge"}},
				Resources:    corev1.ResourceRequirements{Requests: two, Limits: two},
				Env: []corev1.EnvVar{{Name: "PAGES", ValueFrom: &corev1.EnvVarSource{
					ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.hugepages-2Mi", Divisor: limit}}}},
			}}},
	}
}

// readPages is how many pages of 2 MiB the machine has; 0 also where the kernel has none of that size.
func readPages(t *testing.T) int64 {
	t.Helper()
	text, err := os.ReadFile(hugePagesFile)
	if err != nil {
		return 0
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// makePages has the kernel make more pages until the test ends, and says how many the machine has then: memory may be too scattered.
func makePages(t *testing.T, more int64) int64 {
	t.Helper()
	before := readPages(t)
	write := func(n int64) {
		if err := os.WriteFile(hugePagesFile, []byte(strconv.FormatInt(n, 10)), 0); err != nil {
			t.Log(err)
		}
	}
	t.Cleanup(func() { write(before) })
	write(before + more)
	return readPages(t)
}

// TestHugePagesInARealContainer: the node tells of the pages that there are; a pod that asks for two has no more than these where the kernel
// counts them, and one in its volume. Where the kernel gives no pages the pod finds no room.
func TestHugePagesInARealContainer(t *testing.T) {
	m := newMachine(t)
	pages := makePages(t, 3)
	m.start()
	defer m.clean()
	m.await("the node tells of its pages", func(*corev1.Pod) bool {
		node, err := m.client.CoreV1().Nodes().Get(context.Background(), m.name, metav1.GetOptions{})
		if err != nil {
			return false
		}
		capacity, allocatable := node.Status.Capacity["hugepages-2Mi"], node.Status.Allocatable["hugepages-2Mi"]
		memory, left := node.Status.Capacity[corev1.ResourceMemory], node.Status.Allocatable[corev1.ResourceMemory]
		return memory.Value() > 0 && capacity.Value() == pages*hugePageBytes && allocatable.Value() == capacity.Value() &&
			left.Value() == memory.Value()-capacity.Value()
	})
	how := "not counted"
	if m.runtime.Can().HugePageLimits {
		how = counted
	}
	t.Logf("%d pages, %s", pages, how)
	if _, err := m.client.CoreV1().Pods("default").Create(t.Context(), withHugePages(m.name, how), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	p := m.await("ended", func(p *corev1.Pod) bool {
		return p != nil && (p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed)
	})
	switch {
	case pages >= 2 && p.Status.Phase != corev1.PodSucceeded:
		t.Errorf("%s: %+v", p.Status.Message, p.Status.ContainerStatuses)
	case pages < 2 && p.Status.Reason != "OutOfhugepages-2Mi":
		t.Errorf("%s %s", p.Status.Reason, p.Status.Message)
	}
	m.delete("web")
	m.nothingMounted()
}
