package pinning

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/setpoint-io/setpoint/agent/base/private"
	"github.com/setpoint-io/setpoint/agent/resources/topology/cpus"
	"github.com/setpoint-io/setpoint/agent/resources/topology/memory"
)

// The files' names, which are a kubelet's.
const (
	cpuFile    = "cpu_manager_state"
	memoryFile = "memory_manager_state"
)

// restore reads both files, and writes those that are not there.
func (m *Manager) restore() error {
	if err := m.read(cpuFile, "CPU", m.restoreCPUs); err != nil {
		return err
	}
	if err := m.read(memoryFile, "memory", m.restoreMemory); err != nil {
		return err
	}
	return m.save()
}

func (m *Manager) read(name, manager string, decode func(file []byte) error) error {
	path := filepath.Join(m.Dir, name)
	file, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		file, err = nil, nil
	}
	if err == nil {
		err = decode(file)
	}
	if err == nil {
		return nil
	}
	return fmt.Errorf("could not restore state from checkpoint: %w, please drain this node and delete the %s manager checkpoint file %q "+
		"before restarting the agent", err, manager, path)
}

// restoreCPUs reads a file; nil: there is none.
func (m *Manager) restoreCPUs(file []byte) (err error) {
	m.cpuState = &cpus.State{}
	switch {
	case file == nil && m.cpus == nil:
	case file == nil:
		m.cpuState = m.cpus.New()
	case m.cpus == nil:
		_, err = cpus.Decode(file, cpus.PolicyNone)
	default:
		if m.cpuState, err = cpus.Decode(file, cpus.PolicyStatic); err == nil {
			err = m.cpus.Check(m.cpuState)
		}
	}
	return err
}

// restoreMemory reads a file; nil: there is none.
func (m *Manager) restoreMemory(file []byte) (err error) {
	m.memoryState = memory.State{}
	switch {
	case file == nil:
	case m.memory == nil:
		err = memory.DecodeNone(file)
	default:
		m.memoryState, err = m.memory.Decode(file)
	}
	return err
}

// save writes both files, and has running containers moved.
func (m *Manager) save() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	cpuPolicy := cpus.PolicyNone
	if m.cpus != nil {
		cpuPolicy = cpus.PolicyStatic
		m.counts.show(m.cpus, m.cpuState)
	}
	file, err := cpus.Encode(cpuPolicy, m.cpuState)
	if err == nil {
		err = m.write(cpuFile, file)
	}
	if err != nil {
		return err
	}
	file, err = memory.EncodeNone()
	if m.memory != nil {
		file, err = m.memory.Encode(m.memoryState)
	}
	if err == nil {
		err = m.write(memoryFile, file)
	}
	m.Reconcile()
	return err
}

// write leaves a file alone that is as it should be: on a full disk an agent that is started again has to start.
func (m *Manager) write(name string, content []byte) error {
	path := filepath.Join(m.Dir, name)
	if was, err := os.ReadFile(path); err == nil && bytes.Equal(was, content) {
		return nil
	}
	return private.WriteFile(path, content)
}

func (m *Manager) saveOrWarn() {
	if err := m.save(); err != nil { // the next write has it too, and the next agent asks who is left
		m.Logger.Warn("cannot write who has CPUs and memory", "err", err)
	}
}
