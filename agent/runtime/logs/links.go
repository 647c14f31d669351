package logs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/setpoint-io/setpoint/agent/runtime/observed"
)

// Where collectors of logs look on a machine, upstream's.
const (
	MachinePods  = "/var/log/pods"
	MachineLinks = "/var/log/containers"
)

// Links is a folder of links to the logs of containers, whose names tell pod, namespace and container: MachineLinks, but in tests. The
// zero Links makes none. Any method may be called from any goroutine.
type Links struct{ Dir string }

const (
	linkSuffix = ".log"
	// fileNameMaxBytes is what file systems allow; upstream shortens longer names to it.
	fileNameMaxBytes = 255
	// linksMode is upstream's.
	linksMode = 0o755
)

// None reports whether there is no such folder.
func (l Links) None() bool { return l.Dir == "" }

// name is upstream's: POD_NAMESPACE_CONTAINER-ID.log.
func (Links) name(c *runtimeapi.ContainerStatus) string {
	l := c.GetLabels()
	name := l[observed.LabelPodName] + "_" + l[observed.LabelPodNamespace] + "_" + l[observed.LabelContainerName] + "-" + c.GetId()
	return name[:min(len(name), fileNameMaxBytes-len(linkSuffix))] + linkSuffix
}

// Add links a container's log, unless there is a link already.
func (l Links) Add(c *runtimeapi.ContainerStatus) error {
	if l.None() || !filepath.IsAbs(c.GetLogPath()) {
		return nil
	}
	if err := os.MkdirAll(l.Dir, linksMode); err != nil {
		return err
	}
	err := os.Symlink(c.GetLogPath(), filepath.Join(l.Dir, l.name(c)))
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// Prune removes the links to files below these folders that are gone. Other agents' links stay.
func (l Links) Prune(roots ...string) error {
	if l.None() {
		return nil
	}
	entries, err := os.ReadDir(l.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, entry := range entries {
		link := filepath.Join(l.Dir, entry.Name())
		target, readErr := os.Readlink(link)
		below := func(root string) bool { return strings.HasPrefix(target, root+"/") }
		if readErr != nil || !slices.ContainsFunc(roots, below) {
			continue
		}
		if _, statErr := os.Lstat(target); errors.Is(statErr, fs.ErrNotExist) {
			err = errors.Join(err, os.Remove(link))
		}
	}
	return err
}
