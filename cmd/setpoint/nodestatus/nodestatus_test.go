package nodestatus

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/setpoint-io/setpoint/agent/net/network/plan"
	"github.com/setpoint-io/setpoint/internal/simulatednode"
)

var reportTime = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) metav1.Time { return metav1.Time{Time: reportTime.Add(-d)} }

func pointerTo[T any](value T) *T { return &value }

func pressedNode() *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "node-1", CreationTimestamp: ago(48 * time.Hour)},
		Spec:       corev1.NodeSpec{Unschedulable: true},
		Status: corev1.NodeStatus{
			Allocatable: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("4Gi"), corev1.ResourcePods: resource.MustParse("110"),
			},
			Conditions: []corev1.NodeCondition{
				{Type: corev1.NodeReady, Status: corev1.ConditionTrue},
				{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse},
				{
					Type: corev1.NodeDiskPressure, Status: corev1.ConditionTrue, Reason: "KubeletHasDiskPressure",
					Message: "kubelet has disk pressure", LastTransitionTime: ago(5 * time.Minute),
				},
			},
		},
	}
}

func reportedPod(name string, phase corev1.PodPhase, statuses ...corev1.ContainerStatus) corev1.Pod {
	pod := corev1.Pod{Status: corev1.PodStatus{Phase: phase, StartTime: pointerTo(ago(time.Hour)), ContainerStatuses: statuses}}
	pod.Namespace, pod.Name, pod.UID = "shop", name, types.UID(name)
	pod.Spec.Containers = []corev1.Container{{Name: "app", Image: "example.com/" + name + ":1"}}
	return pod
}

func waiting(name, reason, message string) corev1.ContainerStatus {
	state := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
	return corev1.ContainerStatus{Name: name, State: state}
}

func reportedPods() []corev1.Pod {
	crashed := waiting("app", "CrashLoopBackOff", "back-off 20s")
	crashed.RestartCount = 3
	crashed.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{FinishedAt: ago(10 * time.Second)}
	running := corev1.ContainerStatus{Name: "app", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
	initializing := reportedPod("init", corev1.PodPending, waiting("app", podInitializing, ""))
	initializing.Spec.InitContainers = []corev1.Container{{Name: "first", Image: "example.com/first:1"}}
	initializing.Status.InitContainerStatuses = []corev1.ContainerStatus{waiting("first", "ContainerCreating", "")}
	return []corev1.Pod{
		reportedPod("done", corev1.PodSucceeded), reportedPod("web", corev1.PodRunning, running), reportedPod("crash", corev1.PodRunning, crashed),
		reportedPod("absent", corev1.PodPending, waiting("app", "ErrImagePull", "not found")), initializing, reportedPod("new", corev1.PodPending),
	}
}

func reportedSummary() *stats.Summary {
	return &stats.Summary{
		Node: stats.NodeStats{
			CPU:    &stats.CPUStats{UsageNanoCores: pointerTo[uint64](250e6)},
			Memory: &stats.MemoryStats{WorkingSetBytes: pointerTo[uint64](1 << 30)},
			Fs:     &stats.FsStats{UsedBytes: pointerTo[uint64](9 << 30), CapacityBytes: pointerTo[uint64](10 << 30)},
		},
		Pods: []stats.PodStats{{
			PodRef: stats.PodReference{Name: "web", Namespace: "shop", UID: "web"},
			CPU:    &stats.CPUStats{UsageNanoCores: pointerTo[uint64](12e6)}, Memory: &stats.MemoryStats{WorkingSetBytes: pointerTo[uint64](64 << 20)},
			Containers: []stats.ContainerStats{{
				Rootfs: &stats.FsStats{UsedBytes: pointerTo[uint64](1 << 19)}, Logs: &stats.FsStats{UsedBytes: pointerTo[uint64](1 << 19)},
			}},
		}},
	}
}

const wantNodeStatus = `NODE     READY           PODS       CPU             MEMORY             DISK                AGE
node-1   True,cordoned   5 of 110   250m of 2000m   1024Mi of 4096Mi   9216Mi of 10240Mi   2d

PRESSURE       NODE     STATUS   SINCE   REASON                   MESSAGE
DiskPressure   node-1   True     5m      KubeletHasDiskPressure   kubelet has disk pressure

WAITING       CONTAINER   NODE     IMAGE                  SINCE   REASON              MESSAGE
shop/absent   app         node-1   example.com/absent:1   60m     ErrImagePull        not found
shop/crash    app         node-1   example.com/crash:1    10s     CrashLoopBackOff    back-off 20s
shop/init     first       node-1   example.com/first:1    60m     ContainerCreating   -
shop/new      app         node-1   example.com/new:1      60m     Pending             -

POD           PHASE     CPU   MEMORY   DISK   RESTARTS   SINCE
shop/web      Running   12m   64Mi     1Mi    0          60m
shop/absent   Pending   -     -        -      0          60m
shop/crash    Running   -     -        -      3          60m
shop/init     Pending   -     -        -      0          60m
shop/new      Pending   -     -        -      0          60m
`

func TestOneScreenOfANode(t *testing.T) {
	var out strings.Builder
	report := reportNode(pressedNode(), reportedPods(), reportedSummary())
	if err := Print(&out, []Report{report}, true, reportTime); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wantNodeStatus, out.String()); diff != "" {
		t.Error(diff)
	}
}

// TestWaysToOtherNodes: what a node has told is enough to say how its pods are reached.
func TestWaysToOtherNodes(t *testing.T) {
	node := func(name, ip, cidr, facts string) corev1.Node {
		n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{plan.Annotation: facts}}}
		n.Spec.PodCIDR, n.Spec.PodCIDRs = strings.Split(cidr, ",")[0], strings.Split(cidr, ",")
		n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: ip}}
		return n
	}
	all := []corev1.Node{
		node("far", "192.0.2.130", "10.42.2.0/24", `{"mode":"auto","subnets":["192.0.2.128/25"]}`),
		node("near", "192.0.2.2", "10.42.1.0/24,fd42:0:0:1::/64", `{"mode":"auto","subnets":["192.0.2.0/25"]}`),
		node("own", "192.0.2.1", "10.42.0.0/24,fd42::/64", `{"mode":"auto","subnets":["192.0.2.0/25"]}`),
		node("old", "192.0.2.131", "10.42.3.0/24,fd42:0:0:3::/64", ""),
		{ObjectMeta: metav1.ObjectMeta{Name: "play", Labels: map[string]string{simulatednode.Label: "true"}}},
	}
	var out strings.Builder
	report := reportNode(&all[2], nil, &stats.Summary{})
	report.Others = othersOf(&all[2], all)
	if err := Print(&out, []Report{report}, true, reportTime); err != nil {
		t.Fatal(err)
	}
	want := `PODS OF   POD CIDR                       ADDRESS       BY      BECAUSE
far       10.42.2.0/24                   192.0.2.130   vxlan   the nodes share no link
near      10.42.1.0/24                   192.0.2.2     route   both nodes are on 192.0.2.0/25
          fd42:0:0:1::/64                              vxlan   node own has no IPv6 address
old       10.42.3.0/24,fd42:0:0:3::/64   192.0.2.131   none    the nodes share no link, and node old has not told that it can use VXLAN: its agent is older or has not run yet
`
	if !strings.Contains(out.String(), want) {
		t.Errorf("%s\nwant %s", out.String(), want)
	}
}

func TestANodeThatDoesNotTellIsShown(t *testing.T) {
	node := pressedNode()
	node.Status.Conditions = nil
	report := reportNode(node, nil, &stats.Summary{})
	report.Error = "no agent"
	var out strings.Builder
	if err := Print(&out, []Report{report}, false, reportTime); err != nil {
		t.Fatal(err)
	}
	want := `NODE     READY              PODS       CPU          MEMORY        DISK   AGE
node-1   Unknown,cordoned   0 of 110   - of 2000m   - of 4096Mi   -      2d

node-1 does not tell what it uses: no agent
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}
