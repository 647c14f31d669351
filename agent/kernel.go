package agent

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/agent/base/events"
	"github.com/setpoint-io/setpoint/agent/base/oom"
	"github.com/setpoint-io/setpoint/agent/runtime/noswap"
)

// watchMemory tells of what concerns the memory of the whole machine: processes that the kernel ends, and secrets that may be swapped out.
func (a *agent) watchMemory(ctx context.Context, children *sync.WaitGroup) {
	if a.KernelLog == nil {
		return
	}
	recorder := events.NewRecorder(ctx, a.Client, a.NodeName)
	if warning := swapWarning(noswap.MachineSwaps(), noswap.KeepsTmpfs()); warning != "" {
		about := &corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: a.NodeName, UID: types.UID(a.NodeName)}
		recorder.Event(about, corev1.EventTypeWarning, events.PossibleMemoryBackedVolumesOnDisk, warning)
	}
	children.Go(func() {
		oom.Run(ctx, oom.Config{NodeName: a.NodeName, Open: a.KernelLog, Events: recorder, Logger: a.Logger})
	})
}

// swapWarning is upstream's; it is "" where volumes in memory stay there.
func swapWarning(machineSwaps, keepsTmpfs bool) string {
	if !machineSwaps || keepsTmpfs {
		return ""
	}
	return "The tmpfs noswap option is not supported. Memory-backed volumes (e.g. secrets, emptyDirs, etc.) " +
		"might be swapped to disk and should no longer be considered secure."
}
