package agent

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/setpoint-io/setpoint/agent/events"
	"github.com/setpoint-io/setpoint/agent/podconfig"
	"github.com/setpoint-io/setpoint/agent/volumes"
	"github.com/setpoint-io/setpoint/agent/volumes/csinode"
	"github.com/setpoint-io/setpoint/agent/volumes/local"
	"github.com/setpoint-io/setpoint/agent/volumes/watched"
	"github.com/setpoint-io/setpoint/internal/localvolume"
)

// storage is from where pods have persistent volumes.
type storage struct {
	// csiNode says which drivers serve volumes here, local holds those on this node's disk.
	csiNode *csinode.Keeper
	local   *local.Store
	// contents tells of changes of the ConfigMaps and Secrets that pods have as volumes.
	contents *watched.Objects
}

func (a *agent) openStorage(ctx context.Context, children *sync.WaitGroup) (err error) {
	a.csiNode = csinode.New(a.Client, a.NodeName, a.Logger)
	if a.local, err = local.Open(podconfig.Dirs{Root: a.DataDir}.LocalVolumes()); err != nil {
		return fmt.Errorf("agent: local volumes: %w", err)
	}
	a.csiNode.Set(csinode.Driver{CSINodeDriver: storagev1.CSINodeDriver{
		Name: localvolume.Driver, NodeID: a.NodeName, TopologyKeys: []string{corev1.LabelHostname}}})
	children.Go(func() { a.csiNode.Run(ctx) })
	a.contents = watched.New(ctx, a.Client)
	children.Go(a.contents.Wait)
	return nil
}

func (a *agent) volumes(watch *nodeWatch, lookup *objects, recorder events.Recorder) *volumes.Manager {
	return volumes.New(volumes.Config{
		Objects: lookup, Dirs: podconfig.Dirs{Root: a.DataDir}, Local: a.local, Node: watch.node, WithoutMounts: a.WithoutMounts,
		Warn: warnOn(recorder),
	})
}

// registered is called when our Node is there.
func (a *agent) registered(n *corev1.Node) {
	a.csiNode.Look()
	if a.Registered != nil {
		a.Registered(n)
	}
}
