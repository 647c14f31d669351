package agent

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/agent/base/events"
	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/selinux"
	"github.com/setpoint-io/setpoint/agent/runtime/noswap"
	"github.com/setpoint-io/setpoint/agent/volumes"
	"github.com/setpoint-io/setpoint/agent/volumes/csi"
	"github.com/setpoint-io/setpoint/agent/volumes/csinode"
	"github.com/setpoint-io/setpoint/agent/volumes/local"
	"github.com/setpoint-io/setpoint/agent/volumes/watched"
	"github.com/setpoint-io/setpoint/internal/localvolume"
	"github.com/setpoint-io/setpoint/internal/reserved"
)

// storage is from where pods have persistent volumes.
type storage struct {
	// csiNode says which drivers serve volumes here, local holds those on this node's disk.
	csiNode *csinode.Keeper
	local   *local.Store
	// csi uses the drivers that register; nil on a node that uses none.
	csi *csi.Manager
	// watch follows our Node, once it is there.
	watch atomic.Pointer[nodeWatch]
	// contents tells of changes of the ConfigMaps and Secrets that pods have as volumes.
	contents *watched.Objects
}

func (a *agent) openStorage(ctx context.Context, children *sync.WaitGroup) (err error) {
	a.csiNode = csinode.New(a.Client, a.NodeName, a.Logger)
	if a.local, err = local.Open(a.dirs().LocalVolumes()); err != nil {
		return fmt.Errorf("agent: local volumes: %w", err)
	}
	a.csiNode.Set(csinode.Driver{CSINodeDriver: storagev1.CSINodeDriver{
		Name: localvolume.Driver, NodeID: a.NodeName, TopologyKeys: []string{corev1.LabelHostname}}})
	children.Go(func() { a.csiNode.Run(ctx) })
	a.contents = watched.New(ctx, a.Client)
	children.Go(a.contents.Wait)
	return a.openPlugins(ctx, children)
}

// openDrivers uses the CSI drivers that are found.
func (a *agent) openDrivers(ctx context.Context, children *sync.WaitGroup) (err error) {
	dirs := a.dirs()
	a.csi, err = csi.New(ctx, csi.Config{
		NodeName: a.NodeName, Client: a.Client, Dirs: dirs, Nodes: a.csiNode, BuiltIn: []string{localvolume.Driver}, Node: a.ownNode,
		FileLabel: selinux.New().FilesOf, Changed: a.look, Affected: a.volumesChanged,
		Events: events.NewRecorder(ctx, a.Client, a.NodeName), Logger: a.Logger,
	})
	if err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	children.Go(func() { a.csi.Run(ctx) })
	return nil
}

// volumesChanged has the volumes of a pod looked at, once pods are run.
func (a *agent) volumesChanged(pod types.UID) {
	if manager := a.manager.Load(); manager != nil {
		manager.VolumesChanged(pod)
	}
}

// ownNode is our Node, nil before it is known.
func (a *agent) ownNode() *corev1.Node {
	if watch := a.watch.Load(); watch != nil {
		return watch.node()
	}
	return nil
}

// volumesInUse are those that nobody may detach from this node.
func (a *agent) volumesInUse() []corev1.UniqueVolumeName {
	if a.csi == nil {
		return nil
	}
	return a.csi.InUse()
}

func (a *agent) volumes(watch *nodeWatch, lookup *objects, recorder events.Recorder) *volumes.Manager {
	cfg := volumes.Config{
		Objects: lookup, Dirs: a.dirs(), Local: a.local, Node: watch.node, WithoutMounts: a.WithoutMounts,
		Warn: warnOn(recorder),
	}
	if noswap.KeepsTmpfs() {
		cfg.TmpfsOptions = []string{noswap.TmpfsOption}
	}
	if a.csi != nil {
		cfg.Drivers = a.csi
	}
	return volumes.New(cfg)
}

// registered is called when our Node is there.
func (a *agent) registered(n *corev1.Node) {
	a.csiNode.Look()
	if a.Registered != nil {
		a.Registered(n)
	}
}

// attachedByController is what a kubelet says of itself that leaves attaching to the control plane (enableControllerAttachDetach).
const attachedByController = "volumes.kubernetes.io/controller-managed-attach-detach"

// annotations are what others have to know of our Node.
func (a *agent) annotations() map[string]string {
	all := map[string]string{}
	maps.Copy(all, a.networkAnnotations())
	all[reserved.Annotation] = a.reservedAnnotation()
	if a.Plugins {
		all[attachedByController] = "true"
	}
	return all
}
