package kubeletapi

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/setpoint-io/setpoint/agent/runtime/observed"
)

// reading is what the runtime told at one time, by the containers' ids and by the pods' uids. A runtime that knows nothing of
// pods as a whole leaves pods empty.
type reading struct {
	containers map[string]*runtimeapi.ContainerStats
	pods       map[string]*runtimeapi.LinuxPodSandboxStats
}

// readUse asks for pods with their containers or, if the runtime has no answer, for containers alone.
func readUse(ctx context.Context, rt interface {
	ListContainerStats(context.Context, *runtimeapi.ContainerStatsFilter) ([]*runtimeapi.ContainerStats, error)
	ListPodSandboxStats(context.Context, *runtimeapi.PodSandboxStatsFilter) ([]*runtimeapi.PodSandboxStats, error)
}) (reading, error) {
	out := reading{map[string]*runtimeapi.ContainerStats{}, map[string]*runtimeapi.LinuxPodSandboxStats{}}
	if list, err := rt.ListPodSandboxStats(ctx, nil); err == nil && len(list) > 0 {
		for _, p := range list {
			out.pods[p.GetAttributes().GetLabels()[observed.LabelPodUID]] = p.GetLinux()
			out.add(p.GetLinux().GetContainers())
		}
		return out, nil
	}
	list, err := rt.ListContainerStats(ctx, nil)
	out.add(list)
	return out, err
}

func (r *reading) add(list []*runtimeapi.ContainerStats) {
	for _, c := range list {
		r.containers[c.GetAttributes().GetId()] = c
	}
}

// started are when the containers of the pods began to run, by id.
func (s *server) started() map[string]time.Time {
	out := map[string]time.Time{}
	for _, pod := range s.Pods.Pods() {
		for _, list := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
			for _, c := range list {
				if c.State.Running != nil && len(c.ContainerID) > len(s.RuntimeName)+len("://") {
					out[c.ContainerID[len(s.RuntimeName)+len("://"):]] = c.State.Running.StartedAt.Time
				}
			}
		}
	}
	return out
}
