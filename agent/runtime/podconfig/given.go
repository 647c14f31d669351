package podconfig

import (
	"slices"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Given is what the drivers of its devices add to a container.
type Given struct {
	Envs        []*runtimeapi.KeyValue
	Mounts      []*runtimeapi.Mount
	Devices     []*runtimeapi.Device
	Annotations map[string]string
	// CDI are names of devices in the Container Device Interface, which the runtime resolves.
	CDI []string
}

// AddTo puts it into a configuration. As with a kubelet, what the pod says itself comes later and wins; annotations that are the
// agent's own stay. Mounts of drivers show the users of the host, also in a pod that has others.
func (g *Given) AddTo(cfg *runtimeapi.ContainerConfig) {
	cfg.Envs = slices.Concat(g.Envs, cfg.Envs)
	cfg.Mounts = slices.Concat(g.Mounts, cfg.Mounts)
	cfg.Devices = slices.Concat(g.Devices, cfg.Devices)
	for key, value := range g.Annotations {
		if _, own := cfg.Annotations[key]; own {
			continue
		}
		if cfg.Annotations == nil {
			cfg.Annotations = map[string]string{}
		}
		cfg.Annotations[key] = value
	}
	for _, name := range g.CDI {
		if !slices.ContainsFunc(cfg.CDIDevices, func(d *runtimeapi.CDIDevice) bool { return d.Name == name }) {
			cfg.CDIDevices = append(cfg.CDIDevices, &runtimeapi.CDIDevice{Name: name})
		}
	}
}

// Merge adds what another driver gives. Of two for one place, variable or annotation the first stays, as with a kubelet.
func (g *Given) Merge(more Given) {
	for _, e := range more.Envs {
		if !slices.ContainsFunc(g.Envs, func(have *runtimeapi.KeyValue) bool { return have.Key == e.Key }) {
			g.Envs = append(g.Envs, e)
		}
	}
	for _, m := range more.Mounts {
		if !slices.ContainsFunc(g.Mounts, func(have *runtimeapi.Mount) bool { return have.ContainerPath == m.ContainerPath }) {
			g.Mounts = append(g.Mounts, m)
		}
	}
	for _, d := range more.Devices {
		if !slices.ContainsFunc(g.Devices, func(have *runtimeapi.Device) bool { return have.ContainerPath == d.ContainerPath }) {
			g.Devices = append(g.Devices, d)
		}
	}
	for key, value := range more.Annotations {
		if g.Annotations == nil {
			g.Annotations = map[string]string{}
		}
		if _, ok := g.Annotations[key]; !ok {
			g.Annotations[key] = value
		}
	}
	g.CDI = append(g.CDI, more.CDI...)
}
