package embedded

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/setpoint-io/setpoint/agent/base/private"
	"github.com/setpoint-io/setpoint/agent/net/network"
	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/boot"
	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/selinux"
	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/shim"
)

const (
	recordName = "record.json"
	// sandboxIDBytes are known to leftovers, which finds pods by the names of their control groups.
	sandboxIDBytes = 16
	// containerIDBytes are as many as those of containerd, CRI-O and Docker: collectors of logs and metrics, such as Fluent Bit and
	// Filebeat, know containers by 64 hexadecimal digits in names of files and control groups.
	containerIDBytes = 32
)

// sandboxRecord is what a later process needs to know of a sandbox.
type sandboxRecord struct {
	ID        string
	Config    []byte // runtimeapi.PodSandboxConfig
	Handler   string
	CreatedAt time.Time
	// Ready is false while the sandbox is being made and after it was stopped.
	Ready   bool
	ShimPID int
	// HolderPID is the process that holds the pod's network, IPC and UTS namespaces and, if it has one, its user namespace.
	HolderPID  int
	Endpoint   network.Endpoint
	CgroupPath string
	// Labels are those from which its containers' are made.
	Labels selinux.Labels
}

// containerRecord is what a later process needs to know of a container.
type containerRecord struct {
	ID        string
	SandboxID string
	Config    []byte // runtimeapi.ContainerConfig
	ImageID   string
	Layers    []string
	// Volumes are the layers of images mounted as volumes, by their paths in the container, the lowest first.
	Volumes    map[string][]string
	CreatedAt  time.Time
	StartedAt  time.Time
	PID        int
	CgroupPath string
	LogPath    string
	StopSignal string
	Process    boot.Process
	// FileLabel is the SELinux label of its files.
	FileLabel string
	OOMKilled bool
	Exit      *shim.Exit
}

func newID(bytes int) string {
	id := make([]byte, bytes)
	_, _ = rand.Read(id) // never fails, by its documentation
	return hex.EncodeToString(id)
}

// writeRecord replaces the record in dir at once; a reader sees the old or the new one, after a power cut too.
func writeRecord(dir string, record any) error {
	data, err := json.Marshal(record)
	if err != nil {
		return err
	}
	if err := private.WriteFile(filepath.Join(dir, recordName), data); err != nil {
		return fmt.Errorf("write record: %w", err)
	}
	return nil
}

func readRecord(dir string, record any, config proto.Message, raw *[]byte) error {
	data, err := os.ReadFile(filepath.Join(dir, recordName))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, record); err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	return proto.Unmarshal(*raw, config)
}
