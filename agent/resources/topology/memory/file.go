package memory

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/agent/resources/topology"
	"github.com/setpoint-io/setpoint/agent/resources/topology/statefile"
)

// content is what a kubelet's memory_manager_state has. The machine follows from the entries and the settings; it is there to see whether
// these are still the same.
type content struct {
	PolicyName   string  `json:"policyName"`
	MachineState machine `json:"machineState"`
	Entries      State   `json:"entries,omitempty"`
}

// EncodeNone is the file of the policy None.
func EncodeNone() ([]byte, error) { return statefile.Encode(content{PolicyName: PolicyNone}) }

// DecodeNone says what is wrong with a file of the policy None.
func DecodeNone(file []byte) error {
	_, err := decode(file, PolicyNone)
	return err
}

// Encode is the file of a state.
func (p *Static) Encode(s State) ([]byte, error) {
	return statefile.Encode(content{PolicyName: PolicyStatic, MachineState: p.machine(s), Entries: s})
}

// Decode is the state in a file. One that another policy has written, or for another machine or other reserved memory, is refused, in
// upstream's words.
func (p *Static) Decode(file []byte) (State, error) {
	c, err := decode(file, PolicyStatic)
	if err != nil {
		return nil, err
	}
	for pod, containers := range c.Entries {
		for name, blocks := range containers {
			if err := p.check(pod, name, blocks); err != nil {
				return nil, err
			}
		}
	}
	if c.Entries == nil {
		c.Entries = State{}
	}
	if len(c.MachineState) > 0 && !reflect.DeepEqual(c.MachineState.settings(), p.machine(c.Entries).settings()) {
		return nil, errors.New("[memorymanager] the expected machine state is different from the real one")
	}
	return c.Entries, nil
}

func decode(file []byte, policy string) (content, error) {
	var c content
	if err := statefile.Decode(file, &c); err != nil {
		return c, err
	}
	if c.PolicyName != policy {
		return c, fmt.Errorf("[memorymanager] configured policy %q differs from state checkpoint policy %q", policy, c.PolicyName)
	}
	return c, nil
}

func (p *Static) check(pod types.UID, container string, blocks []Block) error {
	for _, b := range blocks {
		for _, id := range b.Nodes {
			tables, ok := p.tables[id]
			if !ok {
				return fmt.Errorf("[memorymanager] (pod: %s, container: %s) the memory assignment uses the NUMA that does not exist", pod, container)
			}
			if _, ok := tables[b.Type]; !ok {
				return fmt.Errorf("[memorymanager] (pod: %s, container: %s) the memory assignment uses memory resource that does not exist", pod, container)
			}
		}
	}
	return nil
}

// settings are what must not change while there are entries: all but how a group has divided what it has given.
func (m machine) settings() map[int]map[string]any {
	out := map[int]map[string]any{}
	for id, n := range m {
		cells := slices.Sorted(slices.Values(n.Cells))
		out[id] = map[string]any{"assignments": n.Assignments, "cells": cells}
		for name, t := range n.Memory {
			all := topology.NodesOf(cells...)
			out[id][string(name)] = [...]uint64{t.Total, t.SystemReserved, t.Allocatable, m.sum(all, name, free)}
		}
	}
	return out
}
