package agent

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
	"k8s.io/utils/cpuset"

	"github.com/setpoint-io/setpoint/agent/kubeletconfig"
	"github.com/setpoint-io/setpoint/agent/resources/topology/cpus"
	"github.com/setpoint-io/setpoint/agent/runtime/observed"
)

// tellCPUs prints on which CPUs this process may run, and from which NUMA nodes its memory may be.
func tellCPUs() int {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for line := range strings.Lines(string(text)) {
		for _, name := range []string{"Cpus_allowed_list:", "Mems_allowed_list:"} {
			if list, ok := strings.CutPrefix(line, name); ok {
				fmt.Print(strings.TrimSpace(list), " ")
			}
		}
	}
	return 0
}

// runsOn waits until the container of a pod may run on these CPUs.
func (m *machine) runsOn(uid, want string) {
	m.t.Helper()
	m.await(uid+" runs on "+want, func(*corev1.Pod) bool {
		list, err := m.runtime.ListContainers(context.Background(), &runtimeapi.ContainerFilter{
			State:         &runtimeapi.ContainerStateValue{State: runtimeapi.ContainerState_CONTAINER_RUNNING},
			LabelSelector: map[string]string{observed.LabelPodUID: uid},
		})
		if err != nil || len(list) == 0 {
			return false
		}
		out, _, err := m.runtime.ExecSync(context.Background(), list[0].Id, []string{"/setpoint", "cpus"}, patience)
		return err == nil && strings.HasPrefix(string(out), want+" ")
	})
}

// withCPUs is a pod that asks for so many CPUs; 0: for nothing.
func withCPUs(node, name string, count int64) *corev1.Pod {
	grace := int64(1)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name)},
		Spec: corev1.PodSpec{NodeName: node, RestartPolicy: corev1.RestartPolicyNever, TerminationGracePeriodSeconds: &grace,
			Containers: []corev1.Container{{Name: "c", Image: "setpoint.local/demo:v1", ImagePullPolicy: corev1.PullIfNotPresent}}},
	}
	if count > 0 {
		list := corev1.ResourceList{corev1.ResourceCPU: *resource.NewQuantity(count, resource.DecimalSI), corev1.ResourceMemory: resource.MustParse("200Mi")}
		pod.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: list, Limits: list.DeepCopy()}
	}
	return pod
}

// delete has a pod end, and waits until it is gone.
func (m *machine) delete(name string) {
	m.t.Helper()
	pods := m.client.CoreV1().Pods("default")
	p, err := pods.Get(context.Background(), name, metav1.GetOptions{})
	if err != nil {
		m.t.Fatal(err)
	}
	now, grace := metav1.Now(), int64(1)
	p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &now, &grace
	if _, err := pods.Update(context.Background(), p, metav1.UpdateOptions{}); err != nil {
		m.t.Fatal(err)
	}
	m.await(name+" is gone", func(*corev1.Pod) bool {
		_, err := pods.Get(context.Background(), name, metav1.GetOptions{})
		return err != nil
	})
}

// exclusive are the CPUs that the node tells monitors of a pod's container.
func (m *machine) exclusive(name string) []int64 {
	m.t.Helper()
	conn, err := grpc.NewClient("unix://"+filepath.Join(m.dir, "pod-resources", "kubelet.sock"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		m.t.Fatal(err)
	}
	defer conn.Close()
	answer, err := podresources.NewPodResourcesListerClient(conn).Get(m.t.Context(), &podresources.GetPodResourcesRequest{PodName: name, PodNamespace: "default"})
	if err != nil {
		m.t.Fatal(err)
	}
	return answer.PodResources.Containers[0].CpuIds
}

// TestACPUOfItsOwn: a Guaranteed pod has one, and memory of the same NUMA node, and another pod's running container loses it, also after the agent was replaced, and gets it
// back when the pod is gone.
func TestACPUOfItsOwn(t *testing.T) {
	m := newMachine(t)
	online, err := cpus.Read(os.DirFS("/sys"))
	if err != nil || len(online) < 2 {
		t.Fatalf("the machine has %d CPUs, %v", len(online), err)
	}
	all := online.All()
	own := cpuset.New(all.List()[1])
	m.plugins = true
	m.settings, err = kubeletconfig.Parse([]byte(fmt.Sprintf(`
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
cpuManagerPolicy: static
reservedSystemCPUs: "%s"
evictionHard: {memory.available: 1Mi}
systemReserved: {memory: 99Mi}
memoryManagerPolicy: Static
reservedMemory: [{numaNode: 0, limits: {memory: 100Mi}}]
topologyManagerPolicy: single-numa-node
`, all.Difference(own))))
	if err != nil {
		t.Fatal(err)
	}
	m.start()
	defer m.clean()
	pods := m.client.CoreV1().Pods("default")
	if _, err := pods.Create(t.Context(), withCPUs(m.name, "plain", 0), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	m.runsOn("uid-plain", all.String())
	if _, err := pods.Create(t.Context(), withCPUs(m.name, "web", 1), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	m.runsOn("uid-web", fmt.Sprintf("%s %d", own, online[own.List()[0]].Node))
	m.runsOn("uid-plain", all.Difference(own).String())
	if got := m.exclusive("web"); len(got) != 1 || int(got[0]) != own.List()[0] {
		t.Errorf("monitors hear of %v", got)
	}
	m.stop()
	m.start()
	m.runsOn("uid-web", own.String())
	m.delete("web")
	m.runsOn("uid-plain", all.String())
	m.delete("plain")
}
