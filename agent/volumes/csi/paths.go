package csi

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"

	"k8s.io/apimachinery/pkg/types"
)

// Names of folders and files, which are upstream's.
const (
	pluginFolder  = "kubernetes.io~csi"
	recordFile    = "vol_data.json"
	stagingFolder = "globalmount"
	mountFolder   = "mount"
	blockFolder   = "volumeDevices"
)

// paths are the places of one volume.
type paths struct {
	root, pods string // the folders of CSI drivers and of the pods
	id         id
	specName   string
	block      bool
	inline     bool
}

// staging is where the volume is once for all pods.
func (p paths) staging() string {
	if p.block {
		return filepath.Join(p.root, blockFolder, "staging", p.specName)
	}
	sum := sha256.Sum256([]byte(p.id.handle))
	return filepath.Join(p.root, p.id.driver, hex.EncodeToString(sum[:]), stagingFolder)
}

// stagingRecord is the file that says what is staged.
func (p paths) stagingRecord() string {
	if p.block {
		return filepath.Join(p.root, blockFolder, p.specName, "data", recordFile)
	}
	return filepath.Join(filepath.Dir(p.staging()), recordFile)
}

// target is where a pod has the volume: a folder, or the file that is a block device.
func (p paths) target(pod types.UID) string {
	if p.block {
		return filepath.Join(p.root, blockFolder, "publish", p.specName, string(pod))
	}
	return filepath.Join(p.podFolder(pod), mountFolder)
}

// podFolder is the volume's in the directory of a pod.
func (p paths) podFolder(pod types.UID) string {
	if p.block {
		return filepath.Join(p.pods, string(pod), blockFolder, pluginFolder, p.specName)
	}
	return filepath.Join(p.pods, string(pod), "volumes", pluginFolder, p.specName)
}

// podRecord is the file that says what is published to a pod.
func (p paths) podRecord(pod types.UID) string { return filepath.Join(p.podFolder(pod), recordFile) }

// attachmentName is upstream's name of a VolumeAttachment.
func attachmentName(i id, node string) string {
	return fmt.Sprintf("csi-%x", sha256.Sum256([]byte(i.handle+i.driver+node)))
}

// inlineHandle is upstream's handle of a volume in a pod's spec.
func inlineHandle(pod types.UID, name string) string {
	return fmt.Sprintf("csi-%x", sha256.Sum256([]byte(string(pod)+name)))
}
