// Package localvolume is what the controller of local volumes and the agents that hold them say to each other.
//
// It owns: the names of the driver and its class, and the messages of the agent's endpoint /localVolumes.
//
// It promises: a handle that Valid accepts is safe as the name of a folder.
package localvolume

import (
	"regexp"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// Driver is the name of the provisioner, as PersistentVolumes and CSINodes have it.
	Driver = "local.setpoint.io"
	// Class is the StorageClass that is there from the start.
	Class = "setpoint-local"
	// Endpoint is the agent's: PUT and DELETE of one volume at Endpoint/<handle>, GET of all handles.
	Endpoint = "/localVolumes"
	// OnlyEmpty is the query that keeps a DELETE from removing data.
	OnlyEmpty = "onlyEmpty"
	// BytesMax bounds a volume: 1 EiB.
	BytesMax = 1 << 60
)

// Volume is what a PUT asks for, and what it answers.
type Volume struct {
	// Bytes is its size, 1 to BytesMax. It grows and never shrinks.
	Bytes int64 `json:"bytes"`
	// Block asks for a raw block device.
	Block bool `json:"block,omitempty"`
	// Enforced says that nothing larger can be written: the device has that size, or the file system has project quotas.
	Enforced bool `json:"enforced,omitempty"`
}

// List is what a GET answers.
type List struct {
	Handles []string `json:"handles"`
}

// Handle is that of the volume made for a claim, and the name of its PersistentVolume.
func Handle(claim types.UID) string { return "pvc-" + string(claim) }

var handle = regexp.MustCompile(`^pvc-[0-9a-z][0-9a-z-]{0,99}$`)

// Valid tells whether a handle is one that Handle makes.
func Valid(name string) bool { return handle.MatchString(name) }
