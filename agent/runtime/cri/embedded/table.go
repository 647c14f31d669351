package embedded

import (
	"maps"
	"slices"
	"sync"

	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/images"
)

// table is which sandboxes and containers there are. mu guards both maps.
type table struct {
	mu         sync.Mutex
	sandboxes  map[string]*sandbox
	containers map[string]*container
}

func newTable() *table {
	return &table{sandboxes: map[string]*sandbox{}, containers: map[string]*container{}}
}

func (t *table) sandbox(id string) (*sandbox, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.sandboxes[id]; s != nil {
		return s, nil
	}
	return nil, notFound("sandbox", id)
}

func (t *table) container(id string) (*container, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c := t.containers[id]; c != nil {
		return c, nil
	}
	return nil, notFound("container", id)
}

func (t *table) containersOf(sandboxID string) []*container {
	t.mu.Lock()
	defer t.mu.Unlock()
	var own []*container
	for _, c := range t.containers {
		if c.sandbox.id == sandboxID {
			own = append(own, c)
		}
	}
	return own
}

func (t *table) allSandboxes() []*sandbox {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Collect(maps.Values(t.sandboxes))
}

func (t *table) allContainers() []*container {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Collect(maps.Values(t.containers))
}

func (t *table) addSandbox(s *sandbox) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sandboxes[s.id] = s
}

func (t *table) addContainer(c *container) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.containers[c.id] = c
}

func (t *table) dropSandbox(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.sandboxes, id)
}

// dropContainer reports whether it was there.
func (t *table) dropContainer(id string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, present := t.containers[id]
	delete(t.containers, id)
	return present
}

// ImagesInUse are the images and layers of containers, ended ones too.
func (t *table) ImagesInUse() (images.Use, error) {
	use := images.Use{Images: map[string]bool{}, Layers: map[string]bool{}}
	for _, c := range t.allContainers() {
		use.Add(c.record.ImageID, c.record.Layers, c.record.Volumes)
	}
	return use, nil
}

func (t *table) layersInUse() map[string]bool {
	use, _ := t.ImagesInUse() // it knows always
	return use.Layers
}
