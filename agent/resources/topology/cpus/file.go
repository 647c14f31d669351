package cpus

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/cpuset"

	"github.com/setpoint-io/setpoint/agent/resources/topology/statefile"
)

// content is what a kubelet's cpu_manager_state has.
type content struct {
	PolicyName    string                          `json:"policyName"`
	DefaultCPUSet string                          `json:"defaultCpuSet"`
	Entries       map[types.UID]map[string]string `json:"entries,omitempty"`
}

// Encode is the file of a state.
func Encode(policy string, s *State) ([]byte, error) {
	c := content{PolicyName: policy, DefaultCPUSet: s.Shared.String()}
	for pod, containers := range s.Exclusive {
		if c.Entries == nil {
			c.Entries = map[types.UID]map[string]string{}
		}
		c.Entries[pod] = map[string]string{}
		for name, set := range containers {
			c.Entries[pod][name] = set.String()
		}
	}
	return statefile.Encode(c)
}

// Decode is the state in a file. One that another policy has written is refused, in upstream's words.
func Decode(file []byte, policy string) (*State, error) {
	var c content
	if err := statefile.Decode(file, &c); err != nil {
		return nil, err
	}
	if c.PolicyName != policy {
		return nil, fmt.Errorf("configured policy %q differs from state checkpoint policy %q", policy, c.PolicyName)
	}
	s := &State{}
	var err error
	if s.Shared, err = cpuset.Parse(c.DefaultCPUSet); err != nil {
		return nil, fmt.Errorf("could not parse default CPU set %q: %w", c.DefaultCPUSet, err)
	}
	for pod, containers := range c.Entries {
		for name, text := range containers {
			set, err := cpuset.Parse(text)
			if err != nil {
				return nil, fmt.Errorf("could not parse cpuset %q for container %q in pod %q: %w", text, name, pod, err)
			}
			s.put(pod, name, set)
		}
	}
	return s, nil
}
