package ledger

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// ErrDamaged is returned by Decode for a file whose checksum does not fit.
var ErrDamaged = errors.New("the checkpoint of devices is damaged")

// nowhere is the NUMA node under which a kubelet's checkpoint lists devices that name none.
const nowhere = -1

// The file, with a kubelet's names.
type file struct {
	Data     json.RawMessage
	Checksum uint32
}

type content struct {
	PodDeviceEntries []entry
	// RegisteredDevices are the healthy devices by resource. Only the resources count: after a start plugins tell anew.
	RegisteredDevices map[string][]string
}

type entry struct {
	PodUID, ContainerName, ResourceName string
	DeviceIDs                           map[int64][]string
	AllocResp                           []byte
}

// Encode is the file that Decode reads. registered are the IDs of healthy devices by resource.
func (l *Ledger) Encode(registered map[string][]string) ([]byte, error) {
	c := content{PodDeviceEntries: []entry{}, RegisteredDevices: registered}
	for _, s := range l.All() {
		e := entry{
			PodUID: string(s.Pod), ContainerName: s.Container, ResourceName: s.Resource, DeviceIDs: map[int64][]string{}, AllocResp: s.Response,
		}
		for _, d := range s.Devices {
			nodes := d.NUMA
			if len(nodes) == 0 {
				nodes = []int64{nowhere}
			}
			for _, node := range nodes {
				e.DeviceIDs[node] = append(e.DeviceIDs[node], d.ID)
			}
		}
		c.PodDeviceEntries = append(c.PodDeviceEntries, e)
	}
	data, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	return json.Marshal(file{Data: data, Checksum: crc32.ChecksumIEEE(data)})
}

// Decode is the ledger in a file, and the resources that were registered when it was written.
func Decode(data []byte) (*Ledger, []string, error) {
	var f file
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if crc32.ChecksumIEEE(f.Data) != f.Checksum {
		return nil, nil, ErrDamaged
	}
	var c content
	if err := json.Unmarshal(f.Data, &c); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	l := New()
	for _, e := range c.PodDeviceEntries {
		l.Put(Share{Key: Key{types.UID(e.PodUID), e.ContainerName, e.ResourceName}, Devices: e.devices(), Response: e.AllocResp})
	}
	var resources []string
	for name := range c.RegisteredDevices {
		resources = append(resources, name)
	}
	slices.Sort(resources)
	return l, resources, nil
}

func (e *entry) devices() []Device {
	var out []Device
	for node, ids := range e.DeviceIDs {
		for _, id := range ids {
			at := slices.IndexFunc(out, func(d Device) bool { return d.ID == id })
			if at < 0 {
				at, out = len(out), append(out, Device{ID: id})
			}
			if node != nowhere {
				out[at].NUMA = append(out[at].NUMA, node)
			}
		}
	}
	for i := range out {
		slices.Sort(out[i].NUMA)
	}
	slices.SortFunc(out, func(a, b Device) int { return cmp.Compare(a.ID, b.ID) })
	return out
}
