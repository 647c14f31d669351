package cpus

import (
	"maps"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/cpuset"
)

// State is who has which CPUs.
type State struct {
	// Shared are those of the containers that have none for themselves.
	Shared cpuset.CPUSet
	// Exclusive are those of the others, by pod and container.
	Exclusive map[types.UID]map[string]cpuset.CPUSet
}

// Of are the CPUs that a container has for itself; false: it uses the shared ones.
func (s *State) Of(pod types.UID, container string) (cpuset.CPUSet, bool) {
	set, ok := s.Exclusive[pod][container]
	return set, ok
}

// Assigned are all CPUs that containers have for themselves.
func (s *State) Assigned() cpuset.CPUSet {
	all := cpuset.New()
	for pod := range s.Exclusive {
		all = all.Union(s.ofPod(pod))
	}
	return all
}

func (s *State) ofPod(pod types.UID) cpuset.CPUSet {
	all := cpuset.New()
	for _, set := range s.Exclusive[pod] {
		all = all.Union(set)
	}
	return all
}

// Clone is a copy that can be changed by itself.
func (s *State) Clone() *State {
	out := &State{Shared: s.Shared, Exclusive: map[types.UID]map[string]cpuset.CPUSet{}}
	for pod, containers := range s.Exclusive {
		out.Exclusive[pod] = maps.Clone(containers)
	}
	return out
}

func (s *State) give(pod types.UID, container string, set cpuset.CPUSet) {
	s.put(pod, container, set)
	s.Shared = s.Shared.Difference(set)
}

func (s *State) put(pod types.UID, container string, set cpuset.CPUSet) {
	if s.Exclusive == nil {
		s.Exclusive = map[types.UID]map[string]cpuset.CPUSet{}
	}
	if s.Exclusive[pod] == nil {
		s.Exclusive[pod] = map[string]cpuset.CPUSet{}
	}
	s.Exclusive[pod][container] = set
}

// Free returns the CPUs of a pod to the shared ones, and reports whether it had any.
func (s *State) Free(pod types.UID) bool {
	_, had := s.Exclusive[pod]
	s.Shared = s.Shared.Union(s.ofPod(pod))
	delete(s.Exclusive, pod)
	return had
}
