package agent

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
	podsapi "k8s.io/kubelet/pkg/apis/pods/v1alpha1"

	"github.com/setpoint-io/setpoint/agent/resources/devices/devicestest"
)

const dongle = "example.com/dongle"

// useDevice is a container that has what its devices' plugin gives it, and no more: it may write to the device.
func useDevice() int {
	file, err := os.OpenFile("/dev/dongle", os.O_WRONLY, 0)
	if err == nil {
		err = file.Close()
	}
	if err == nil && os.Getenv("DONGLES") != "d1" {
		err = fmt.Errorf("DONGLES is %q", os.Getenv("DONGLES"))
	}
	if err == nil {
		_, err = os.ReadFile("/given/in")
	}
	if err == nil && os.WriteFile("/given/out", nil, 0o600) == nil {
		err = fmt.Errorf("/given can be written to")
	}
	if file, also := os.OpenFile("/dev/dongle", os.O_RDWR, 0); also == nil && err == nil {
		err = fmt.Errorf("%s can be read", file.Name())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// withDevice is a pod whose init container checks the device and hands it on.
func withDevice(node, name string) *corev1.Pod {
	grace := int64(1)
	one := corev1.ResourceRequirements{Limits: corev1.ResourceList{dongle: resource.MustParse("1")},
		Requests: corev1.ResourceList{dongle: resource.MustParse("1")}}
	container := corev1.Container{Image: "setpoint.local/demo:v1", ImagePullPolicy: corev1.PullIfNotPresent,
		TerminationMessagePath: "/dev/termination-log", TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError, Resources: one}
	first, main := container, container
	first.Name, first.Command = "use", []string{"/setpoint", "device"}
	main.Name = "c"
	main.ReadinessProbe = &corev1.Probe{PeriodSeconds: 1, TimeoutSeconds: 1, SuccessThreshold: 1, FailureThreshold: 3,
		ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt32(8080)}}}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: "uid-web"},
		Spec: corev1.PodSpec{NodeName: node, RestartPolicy: corev1.RestartPolicyNever, TerminationGracePeriodSeconds: &grace,
			InitContainers: []corev1.Container{first}, Containers: []corev1.Container{main}},
	}
}

// offers waits until the Node has as many dongles, of which some are healthy.
func (m *machine) offers(all, healthy string) {
	m.t.Helper()
	m.await(healthy+" of "+all+" dongles", func(*corev1.Pod) bool {
		node, err := m.client.CoreV1().Nodes().Get(context.Background(), m.name, metav1.GetOptions{})
		if err != nil {
			return false
		}
		capacity, allocatable := node.Status.Capacity[dongle], node.Status.Allocatable[dongle]
		return capacity.String() == all && allocatable.String() == healthy
	})
}

// plug has a plugin with one dongle register with the agent.
func (m *machine) plug(given string) *devicestest.Plugin {
	m.t.Helper()
	dir := filepath.Join(m.dir, "device-plugins")
	m.await("the socket to register at", func(*corev1.Pod) bool {
		_, err := os.Stat(filepath.Join(dir, "kubelet.sock"))
		return err == nil
	})
	p := devicestest.New(dongle, "d1")
	p.Options.PreStartRequired = true
	p.Response = func(ids []string) (*pluginapi.ContainerAllocateResponse, error) {
		return &pluginapi.ContainerAllocateResponse{
			Envs:    map[string]string{"DONGLES": strings.Join(ids, ",")},
			Mounts:  []*pluginapi.Mount{{ContainerPath: "/given", HostPath: given, ReadOnly: true}},
			Devices: []*pluginapi.DeviceSpec{{ContainerPath: "/dev/dongle", HostPath: "/dev/kmsg", Permissions: "w"}},
		}, nil
	}
	p.Serve(m.t, dir, "dongle.sock")
	if err := p.Register(m.t.Context(), dir, "dongle.sock"); err != nil {
		m.t.Fatal(err)
	}
	m.offers("1", "1")
	return p
}

// tellsResources is what the node tells monitors, a line for each device.
func (m *machine) tellsResources() string {
	m.t.Helper()
	conn, err := grpc.NewClient("unix://"+filepath.Join(m.dir, "pod-resources", "kubelet.sock"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		m.t.Fatal(err)
	}
	defer conn.Close()
	list, err := podresources.NewPodResourcesListerClient(conn).List(m.t.Context(), &podresources.ListPodResourcesRequest{})
	if err != nil {
		m.t.Fatal(err)
	}
	var lines []string
	for _, pod := range list.PodResources {
		for _, c := range pod.Containers {
			for _, d := range c.Devices {
				lines = append(lines, fmt.Sprintf("%s/%s %s %s", pod.Name, c.Name, d.ResourceName, strings.Join(d.DeviceIds, ",")))
			}
		}
	}
	return strings.Join(lines, "\n")
}

// tellsPods are the phases of the node's pods, as programs on it are told.
func (m *machine) tellsPods() string {
	m.t.Helper()
	conn, err := grpc.NewClient("unix://"+filepath.Join(m.dir, "pods-api", "pods-api.sock"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		m.t.Fatal(err)
	}
	defer conn.Close()
	list, err := podsapi.NewPodsClient(conn).ListPods(m.t.Context(), &podsapi.ListPodsRequest{})
	if err != nil {
		m.t.Fatal(err)
	}
	var lines []string
	for _, text := range list.Pods {
		var pod corev1.Pod
		if err := pod.Unmarshal(text); err != nil {
			m.t.Fatal(err)
		}
		lines = append(lines, fmt.Sprintf("%s %s", pod.Name, pod.Status.Phase))
	}
	return strings.Join(lines, "\n")
}

// TestADeviceOfAPlugin: a pod has it and another does not, also after the agent and the plugin were replaced, until the pod is deleted.
func TestADeviceOfAPlugin(t *testing.T) {
	m := newMachine(t)
	m.plugins = true
	given := t.TempDir()
	if err := os.WriteFile(filepath.Join(given, "in"), []byte("there"), 0o600); err != nil {
		t.Fatal(err)
	}
	m.start()
	defer m.clean()
	plugin := m.plug(given)
	pods := m.client.CoreV1().Pods("default")
	if _, err := pods.Create(t.Context(), withDevice(m.name, "web"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	p := m.await("ready", func(p *corev1.Pod) bool { return p != nil && ready(p) })
	want := []corev1.ResourceStatus{{Name: dongle, Resources: []corev1.ResourceHealth{{ResourceID: "d1", Health: corev1.ResourceHealthStatusHealthy}}}}
	if diff := cmp.Diff(want, p.Status.ContainerStatuses[0].AllocatedResourcesStatus); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"Allocate d1", "Allocate d1", "PreStart d1", "PreStart d1"}, plugin.Calls()); diff != "" {
		t.Error(diff)
	}
	if got := m.tellsResources(); got != "web/c example.com/dongle d1" {
		t.Errorf("the node tells %q", got)
	}
	if got := m.tellsPods(); got != "web Running" {
		t.Errorf("the node's pods are %q", got)
	}
	m.stop()
	m.start()
	m.plug(given)
	late := withDevice(m.name, "late")
	late.UID = "uid-late"
	if _, err := pods.Create(t.Context(), late, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	m.await("the late pod is rejected", func(*corev1.Pod) bool {
		p, err := pods.Get(context.Background(), "late", metav1.GetOptions{})
		return err == nil && p.Status.Phase == corev1.PodFailed && p.Status.Reason == "UnexpectedAdmissionError" &&
			strings.Contains(p.Status.Message, "Requested: 1, Available: 0")
	})
	p = m.await("still ready", func(p *corev1.Pod) bool { return p != nil && ready(p) })
	now, grace := metav1.Now(), int64(1)
	p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &now, &grace
	if _, err := pods.Update(t.Context(), p, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	m.await("deleted", func(p *corev1.Pod) bool { return p == nil })
	if record, err := os.ReadFile(filepath.Join(m.dir, "device-plugins", "kubelet_internal_checkpoint")); err != nil || strings.Contains(string(record), "uid-") {
		t.Errorf("the record says %s, %v", record, err)
	}
	m.nothingMounted()
}
