package ledger

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Want is what a container asks for.
type Want struct {
	Pod                 *corev1.Pod
	Container, Resource string
	Count               int
}

// Key of the share that answers it.
func (w Want) Key() Key { return Key{w.Pod.UID, w.Container, w.Resource} }

// Choice is what a container may get: all of Must, and of Free as many as are missing to Count.
type Choice struct {
	Must, Free []Device
	Count      int
}

// Choose says which devices may be given for a want. known are the devices of the resource; nil: no plugin has registered it. The
// errors have upstream's words.
func (l *Ledger) Choose(w Want, known map[string]Device) (Choice, error) {
	healthy := map[string]Device{}
	for id, d := range known {
		if d.Healthy {
			healthy[id] = d
		}
	}
	switch {
	case known == nil:
		return Choice{}, fmt.Errorf("cannot allocate unregistered device %s", w.Resource)
	case len(healthy) == 0:
		return Choice{}, fmt.Errorf("no healthy devices present; cannot allocate unhealthy devices %s", w.Resource)
	}
	choice := Choice{Count: w.Count}
	for _, d := range l.handedOn(w.Pod, w.Container, w.Resource) {
		if d, ok := healthy[d.ID]; ok && len(choice.Must) < w.Count {
			choice.Must = append(choice.Must, d)
		}
	}
	used := l.inUse(w.Resource)
	for _, id := range slices.Sorted(maps.Keys(healthy)) {
		if !used[id] {
			choice.Free = append(choice.Free, healthy[id])
		}
	}
	if missing := w.Count - len(choice.Must); len(choice.Free) < missing {
		return Choice{}, fmt.Errorf("requested number of devices unavailable for %s. Requested: %d, Available: %d",
			w.Resource, missing, len(choice.Free))
	}
	return choice, nil
}

// Open reports whether there is anything to prefer.
func (c Choice) Open() bool {
	missing := c.Count - len(c.Must)
	return missing > 0 && missing < len(c.Free)
}

// Take picks Count devices: those of Must, then those of the preferred ones that are free, then others in the order of their IDs. What
// is preferred and not free is left out.
func (c Choice) Take(preferred []string) []Device {
	taken := slices.Clone(c.Must)
	has := func(id string) bool { return slices.ContainsFunc(taken, func(d Device) bool { return d.ID == id }) }
	take := func(ids func(Device) bool) {
		for _, d := range c.Free {
			if len(taken) < c.Count && !has(d.ID) && ids(d) {
				taken = append(taken, d)
			}
		}
	}
	take(func(d Device) bool { return slices.Contains(preferred, d.ID) })
	take(func(Device) bool { return true })
	slices.SortFunc(taken, func(a, b Device) int { return cmp.Compare(a.ID, b.ID) })
	return taken
}
