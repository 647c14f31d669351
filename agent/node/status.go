package node

import (
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/component-helpers/nodedeclaredfeatures/features/inplacepodresize"
	"k8s.io/component-helpers/nodedeclaredfeatures/features/restartallcontainers"

	"github.com/setpoint-io/setpoint/agent/base/wait"
	"github.com/setpoint-io/setpoint/internal/poddial"
)

// keepStatus looks at the machine every CheckInterval, and at the Node when told
// that someone may have changed it, and writes what differs.
func (k *keeper) keepStatus(ctx context.Context) {
	told := false
	for {
		err := k.refresh(ctx, told)
		if err != nil && ctx.Err() == nil {
			k.Logger.Warn("cannot write the node status", "node", k.Name, "err", err)
		}
		told = told && err != nil // what could not be looked at is still to be
		t := time.NewTimer(k.CheckInterval)
		select {
		case <-ctx.Done():
			t.Stop()
			return
		case <-k.Changed:
			told = true
			t.Stop()
			if !wait.For(ctx, time.Until(k.answered.Add(answerPause))) {
				return
			}
		case <-t.C:
		}
	}
}

// refresh writes the status if it is due. The Node is read again only then or
// when told, so a quiet node costs no request.
func (k *keeper) refresh(ctx context.Context, told bool) error {
	if !told && !k.due(ctx) {
		return nil
	}
	got, err := k.Client.CoreV1().Nodes().Get(ctx, k.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return k.ensure(ctx) // someone deleted the Node of a live machine
	}
	if err != nil {
		return err
	}
	k.saw(got)
	if told && !k.due(ctx) {
		return nil
	}
	if told {
		k.answered = time.Now()
	}
	return errors.Join(k.annotate(ctx), k.writeStatus(ctx))
}

// due reports whether the Node as last seen says something else than the
// machine does, or has not been written for long.
func (k *keeper) due(ctx context.Context) bool {
	now := time.Now()
	return now.Sub(k.written) >= k.StatusInterval || len(k.unsaid()) > 0 ||
		!sameButHeartbeats(k.last.Status, k.status(ctx, k.last.Status, now))
}

// writeStatus patches the status over k.last, keeping the conditions of others.
func (k *keeper) writeStatus(ctx context.Context) error {
	next := k.last.DeepCopy()
	next.Status = k.status(ctx, k.last.Status, time.Now())
	patch, err := statusPatch(k.last, next)
	if err != nil {
		return err
	}
	got, err := k.Client.CoreV1().Nodes().Patch(ctx, k.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil {
		return err
	}
	k.tell(k.last, got)
	k.saw(got)
	k.written = time.Now()
	k.owner.Store(got.UID)
	return nil
}

func statusPatch(from, to *corev1.Node) ([]byte, error) {
	a, err := json.Marshal(corev1.Node{Status: from.Status})
	if err != nil {
		return nil, err
	}
	b, err := json.Marshal(corev1.Node{Status: to.Status})
	if err != nil {
		return nil, err
	}
	patch, err := strategicpatch.CreateTwoWayMergePatch(a, b, corev1.Node{})
	if err != nil || equality.Semantic.DeepEqual(from.Status.Addresses, to.Status.Addresses) {
		return patch, err
	}
	return replaceAddresses(patch, to.Status.Addresses)
}

// replaceAddresses makes a patch say all addresses. Their merge key is the type, which several may have, as a node's of two families:
// merging would lose some.
func replaceAddresses(patch []byte, addresses []corev1.NodeAddress) ([]byte, error) {
	var object map[string]any
	if err := json.Unmarshal(patch, &object); err != nil {
		return nil, err
	}
	all := []any{map[string]string{"$patch": "replace"}}
	for _, a := range addresses {
		all = append(all, a)
	}
	status, ok := object["status"].(map[string]any)
	if !ok {
		status = map[string]any{}
		object["status"] = status
	}
	status["addresses"] = all
	delete(status, "$setElementOrder/addresses")
	return json.Marshal(object)
}

func sameButHeartbeats(a, b corev1.NodeStatus) bool {
	return equality.Semantic.DeepEqual(withoutHeartbeats(a), withoutHeartbeats(b))
}

func withoutHeartbeats(s corev1.NodeStatus) corev1.NodeStatus {
	out := *s.DeepCopy()
	for i := range out.Conditions {
		out.Conditions[i].LastHeartbeatTime = metav1.Time{}
	}
	return out
}

// DeclaredFeatures are what pods may ask of this agent, sorted.
func DeclaredFeatures() []string {
	return []string{
		inplacepodresize.IPPRPodLevelResourcesFeatureGate, inplacepodresize.IPPRInitContainersFeatureGate,
		restartallcontainers.RestartAllContainersOnContainerExits, poddial.Feature,
	}
}

// status is old with everything this package owns brought up to date.
func (k *keeper) status(ctx context.Context, old corev1.NodeStatus, now time.Time) corev1.NodeStatus {
	s := *old.DeepCopy()
	s.Addresses = k.Addresses()
	k.resources(&s)
	s.DaemonEndpoints.KubeletEndpoint.Port = k.Port
	s.NodeInfo = k.info()
	s.DeclaredFeatures = DeclaredFeatures()
	if k.VolumesInUse != nil {
		s.VolumesInUse = k.VolumesInUse()
	}
	if k.Runtime != nil {
		features := k.Runtime(ctx)
		s.RuntimeHandlers, s.Features = features.Handlers, features.Node
	}
	if k.Images != nil {
		s.Images = k.Images(ctx)
		if k.ImagesMax >= 0 {
			s.Images = s.Images[:min(len(s.Images), k.ImagesMax)]
		}
	}
	for _, c := range slices.Concat(k.conditions(ctx), k.more()) {
		s.Conditions = setCondition(s.Conditions, c, now)
	}
	return s
}

func (k *keeper) capacity() corev1.ResourceList {
	out := corev1.ResourceList{
		corev1.ResourceCPU:              *resource.NewQuantity(int64(k.machine.cpus), resource.DecimalSI),
		corev1.ResourceMemory:           *resource.NewQuantity(k.machine.memoryBytes, resource.BinarySI),
		corev1.ResourceEphemeralStorage: *resource.NewQuantity(k.machine.storageBytes, resource.BinarySI),
		corev1.ResourcePods:             *resource.NewQuantity(k.MaxPods, resource.DecimalSI),
	}
	for _, pool := range k.machine.hugePages {
		out[pool.Name()] = *resource.NewQuantity(pool.Bytes(), resource.BinarySI)
	}
	return out
}

func (k *keeper) info() corev1.NodeSystemInfo {
	return corev1.NodeSystemInfo{
		MachineID:               k.machine.machineID,
		SystemUUID:              k.machine.systemUUID,
		BootID:                  k.machine.bootID,
		KernelVersion:           k.machine.kernel,
		OSImage:                 k.machine.osImage,
		ContainerRuntimeVersion: k.RuntimeVersion,
		KubeletVersion:          k.Version,
		OperatingSystem:         runtime.GOOS,
		Architecture:            runtime.GOARCH,
	}
}
