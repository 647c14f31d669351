package csi

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/agent/base/private"
)

// record is a vol_data.json, with upstream's names: what has to be taken away, and by which driver.
type record struct {
	SpecName     string                        `json:"specVolID,omitempty"`
	Handle       string                        `json:"volumeHandle"`
	Driver       string                        `json:"driverName"`
	Node         string                        `json:"nodeName,omitempty"`
	AttachmentID string                        `json:"attachmentID,omitempty"`
	Mode         storagev1.VolumeLifecycleMode `json:"volumeLifecycleMode,omitempty"`
	Label        string                        `json:"seLinuxMountContext,omitempty"`
}

func (t *task) record(node string) record {
	p := t.paths
	r := record{
		SpecName: p.specName, Handle: p.id.handle, Driver: p.id.driver, Node: node, Mode: storagev1.VolumeLifecyclePersistent, Label: t.label,
	}
	if p.inline {
		r.Mode = storagev1.VolumeLifecycleEphemeral
	}
	r.AttachmentID = attachmentName(p.id, node)
	return r
}

func (r *record) save(path string) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return err
	}
	return private.WriteFile(path, data)
}

func readRecord(path string) (r record, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return r, fmt.Errorf("%s: %w", path, err)
	}
	if r.Handle == "" || r.Driver == "" {
		return r, fmt.Errorf("%s names no driver and volume", path)
	}
	return r, nil
}

func (m *Manager) root() string { return filepath.Join(m.Dirs.Plugins(), "kubernetes.io", "csi") }

func (m *Manager) pathsOf(i id, specName string, block, inline bool) paths {
	return paths{root: m.root(), pods: m.Dirs.Pods(), id: i, specName: specName, block: block, inline: inline}
}

// recorded is what a record says of a volume: its places, and the SELinux label with which it is mounted.
type recorded struct {
	paths
	label string
}

// publishedTo are the volumes of which there is a record in a pod's directory.
func (m *Manager) publishedTo(pod types.UID) ([]recorded, error) {
	var found []recorded
	for _, kind := range []string{"volumes", blockFolder} {
		files, err := filepath.Glob(filepath.Join(m.Dirs.Pods(), string(pod), kind, pluginFolder, "*", recordFile))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			r, err := readRecord(file)
			if err != nil {
				return nil, err
			}
			name, inline := filepath.Base(filepath.Dir(file)), r.Mode == storagev1.VolumeLifecycleEphemeral
			found = append(found, recorded{m.pathsOf(id{r.Driver, r.Handle}, name, kind == blockFolder, inline), r.Label})
		}
	}
	return found, nil
}

// load finds what an earlier Manager has mounted. Whether that is still so, is seen when it is needed.
func (m *Manager) load() error {
	pods, err := os.ReadDir(m.Dirs.Pods())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, pod := range pods {
		uid := types.UID(pod.Name())
		found, err := m.publishedTo(uid)
		if err != nil {
			m.Logger.Error("a CSI volume of a pod is not known any more", "pod", uid, "err", err)
			continue
		}
		for _, p := range found {
			m.known(p.paths, p.label).pods[uid] = true
		}
	}
	return m.loadStaged()
}

func (m *Manager) loadStaged() error {
	for _, pattern := range []string{"*/*/" + recordFile, blockFolder + "/*/data/" + recordFile} {
		files, err := filepath.Glob(filepath.Join(m.root(), pattern))
		if err != nil {
			return err
		}
		for _, file := range files {
			r, err := readRecord(file)
			if err != nil {
				m.Logger.Error("a staged CSI volume is not known any more", "err", err)
				continue
			}
			m.known(m.pathsOf(id{r.Driver, r.Handle}, r.SpecName, filepath.Base(filepath.Dir(file)) == "data", false), r.Label)
		}
	}
	return nil
}

func (m *Manager) known(p paths, label string) *volume {
	if m.volumes[p.id] == nil {
		m.volumes[p.id] = newVolume(p)
		m.volumes[p.id].label = label
	}
	return m.volumes[p.id]
}
