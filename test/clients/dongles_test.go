package clients

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/dynamic-resource-allocation/resourceslice"
)

const (
	dongleDriver = "dongles.example.com"
	// cdiFolder is where runtimes look for what drivers prepare.
	cdiFolder = "/run/cdi"
)

// dongles is a driver of devices made with upstream's library: a dongle is a folder of the node in the container.
type dongles struct {
	t *testing.T
	// folder is what containers see.
	folder string

	mu       sync.Mutex
	prepared map[types.UID]bool
}

// startDongles registers the driver with the kubelet, and publishes two devices.
func startDongles(t *testing.T, c *cluster, n *stockNode) *dongles {
	t.Helper()
	d := &dongles{t: t, folder: n.path("dongle"), prepared: map[types.UID]bool{}}
	mustf(t, os.MkdirAll(cdiFolder, 0o755), "making the folder of CDI")
	mustf(t, os.Mkdir(d.folder, 0o755), "making a dongle")
	mustf(t, os.WriteFile(filepath.Join(d.folder, "says"), []byte("I am a dongle\n"), 0o644), "making a dongle")
	data := n.path("root/plugins/" + dongleDriver)
	mustf(t, os.MkdirAll(data, 0o755), "making the driver's folder")
	helper, err := kubeletplugin.Start(t.Context(), d, kubeletplugin.DriverName(dongleDriver), kubeletplugin.NodeName(stockName),
		kubeletplugin.KubeClient(c.client), kubeletplugin.RegistrarDirectoryPath(n.path("root/plugins_registry")),
		kubeletplugin.PluginDataDirectoryPath(data), kubeletplugin.HealthService(false))
	mustf(t, err, "starting the driver")
	t.Cleanup(helper.Stop)
	pool := resourceslice.Pool{Slices: []resourceslice.Slice{{Devices: []resourcev1.Device{{Name: "dongle-1"}, {Name: "dongle-2"}}}}}
	mustf(t, helper.PublishResources(t.Context(), resourceslice.DriverResources{Pools: map[string]resourceslice.Pool{stockName: pool}}), "publishing devices")
	return d
}

// PrepareResourceClaims writes what the runtime needs to know of the devices of claims.
func (d *dongles) PrepareResourceClaims(_ context.Context, claims []*resourcev1.ResourceClaim) (map[types.UID]kubeletplugin.PrepareResult, error) {
	results := map[types.UID]kubeletplugin.PrepareResult{}
	for _, claim := range claims {
		var result kubeletplugin.PrepareResult
		for _, allocated := range claim.Status.Allocation.Devices.Results {
			result.Devices = append(result.Devices, kubeletplugin.Device{
				Requests: []string{allocated.Request}, PoolName: allocated.Pool, DeviceName: allocated.Device,
				CDIDeviceIDs: []string{"example.com/dongle=" + string(claim.UID)},
			})
		}
		spec := fmt.Sprintf(`{"cdiVersion": "0.6.0", "kind": "example.com/dongle", "devices": [{"name": %q, "containerEdits": {
			"env": ["DONGLE=%s"], "deviceNodes": [{"path": "/dev/dongle", "hostPath": "/dev/zero"}],
			"mounts": [{"hostPath": %q, "containerPath": "/dongle", "options": ["ro", "bind"]}]}}]}`, claim.UID, result.Devices[0].DeviceName, d.folder)
		result.Err = os.WriteFile(d.spec(claim.UID), []byte(spec), 0o644)
		results[claim.UID] = result
		d.note(claim.UID, true)
	}
	return results, nil
}

// UnprepareResourceClaims undoes it.
func (d *dongles) UnprepareResourceClaims(_ context.Context, claims []kubeletplugin.NamespacedObject) (map[types.UID]error, error) {
	results := map[types.UID]error{}
	for _, claim := range claims {
		results[claim.UID] = os.RemoveAll(d.spec(claim.UID))
		d.note(claim.UID, false)
	}
	return results, nil
}

func (d *dongles) spec(claim types.UID) string {
	return filepath.Join(cdiFolder, "example.com-dongle-"+string(claim)+".json")
}

func (d *dongles) note(claim types.UID, prepared bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if prepared {
		d.prepared[claim] = true
	} else {
		delete(d.prepared, claim)
	}
}

// inUse counts claims that are prepared.
func (d *dongles) inUse() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.prepared)
}

// HandleError learns what went wrong in the background.
func (d *dongles) HandleError(_ context.Context, err error, message string) {
	fmt.Fprintf(d.t.Output(), "driver: %s: %v\n", message, err)
}

// WatchHealthStatus is not asked: the health service is off.
func (d *dongles) WatchHealthStatus(context.Context, chan<- kubeletplugin.DeviceHealthReport) error {
	return kubeletplugin.ErrHealthNotSupported
}
