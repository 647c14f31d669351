package devices

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/setpoint-io/setpoint/agent/resources/devices/ledger"
	"github.com/setpoint-io/setpoint/agent/runtime/podconfig"
)

const (
	// devicesMax bounds the devices of one resource.
	devicesMax = 10_000
	// idBytesMax bounds the ID of a device. Upstream's documentation says 63, and nobody keeps to it.
	idBytesMax = 253
	// nodesMax bounds the NUMA nodes of a device.
	nodesMax = 64
	// responseBytesMax bounds what is kept of an allocation: it is in a file that is written again and again.
	responseBytesMax = 64 << 10
)

// checkedDevices are the devices in a plugin's list, by ID.
func checkedDevices(list []*pluginapi.Device) (map[string]ledger.Device, error) {
	if len(list) > devicesMax {
		return nil, fmt.Errorf("%d devices are more than %d", len(list), devicesMax)
	}
	out := make(map[string]ledger.Device, len(list))
	for _, d := range list {
		switch nodes := d.GetTopology().GetNodes(); {
		case d.GetID() == "" || len(d.GetID()) > idBytesMax:
			return nil, fmt.Errorf("the ID of a device has %d bytes, not 1 to %d", len(d.GetID()), idBytesMax)
		case len(nodes) > nodesMax:
			return nil, fmt.Errorf("device %q names %d NUMA nodes, more than %d", d.ID, len(nodes), nodesMax)
		}
		device := ledger.Device{ID: d.ID, Healthy: d.Health == pluginapi.Healthy}
		for _, node := range d.GetTopology().GetNodes() {
			if node.GetID() < 0 {
				return nil, fmt.Errorf("device %q names the NUMA node %d", d.ID, node.GetID())
			}
			device.NUMA = append(device.NUMA, node.GetID())
		}
		slices.Sort(device.NUMA)
		device.NUMA = slices.Compact(device.NUMA)
		out[d.ID] = device
	}
	return out, nil
}

var errResponseSize = fmt.Errorf("its answer to Allocate has more than %d bytes", responseBytesMax)

// checkResponse says what is wrong with the answer to Allocate for one container.
func checkResponse(r *pluginapi.ContainerAllocateResponse) error {
	if proto.Size(r) > responseBytesMax {
		return errResponseSize
	}
	for name := range r.Envs {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			return fmt.Errorf("%q is not the name of a variable", name)
		}
	}
	for _, m := range r.Mounts {
		if err := errors.Join(checkPath(m.GetHostPath()), checkPath(m.GetContainerPath())); err != nil {
			return fmt.Errorf("a mount: %w", err)
		}
	}
	for _, d := range r.Devices {
		if err := errors.Join(checkPath(d.GetHostPath()), checkPath(d.GetContainerPath())); err != nil {
			return fmt.Errorf("a device: %w", err)
		}
		if strings.Trim(d.Permissions, "rwm") != "" {
			return fmt.Errorf("device %s: permissions %q are not of r, w and m", d.HostPath, d.Permissions)
		}
	}
	return nil
}

// checkPath: what is refused here the runtime would resolve to another place than the plugin may have meant.
func checkPath(path string) error {
	if !filepath.IsAbs(path) || slices.Contains(strings.Split(path, "/"), "..") || strings.Contains(path, "\x00") {
		return fmt.Errorf("the path %q is not absolute, or leads upwards", path)
	}
	return nil
}

// translate turns the answer to Allocate into what CRI wants.
func translate(encoded []byte) (podconfig.Given, error) {
	var r pluginapi.ContainerAllocateResponse
	if err := proto.Unmarshal(encoded, &r); err != nil {
		return podconfig.Given{}, err
	}
	given := podconfig.Given{Annotations: r.Annotations}
	for _, name := range slices.Sorted(maps.Keys(r.Envs)) {
		given.Envs = append(given.Envs, &runtimeapi.KeyValue{Key: name, Value: []byte(r.Envs[name])})
	}
	for _, m := range r.Mounts {
		given.Mounts = append(given.Mounts, &runtimeapi.Mount{ContainerPath: m.ContainerPath, HostPath: m.HostPath, Readonly: m.ReadOnly})
	}
	for _, d := range r.Devices {
		device := &runtimeapi.Device{ContainerPath: d.ContainerPath, HostPath: d.HostPath, Permissions: d.Permissions}
		given.Devices = append(given.Devices, device)
	}
	for _, d := range r.CdiDevices {
		given.CDI = append(given.CDI, d.GetName())
	}
	return given, nil
}
