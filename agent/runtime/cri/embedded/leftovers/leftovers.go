package leftovers

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/setpoint-io/setpoint/agent/base/machine"
	"github.com/setpoint-io/setpoint/agent/net/network"
	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/cgroup"
	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/shim"
	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/trial"
)

// groupSettleTime is how long an empty group of a pod may be one that an agent is about to fill.
const groupSettleTime = 10 * time.Second

// isID fits the ids that the runtime gives to pods.
var isID = regexp.MustCompile("^[0-9a-f]{32}$")

// Pod is one that runs, or has run, without an agent: of a data directory whose agent has ended.
type Pod struct {
	ID string
	// Name is "namespace/name"; the ID if its record is gone.
	Name string
	// UID is the pod's; "" if its record is gone.
	UID   string
	group []string
	shim  machine.Process // 0: none
}

// Find finds the pods of a data directory that no Runtime has open, also if the directory has been removed: by
// their records, by what their shims were started with, by where their containers write to, and by their cgroups. Other
// data directories' pods are not among them. It needs root.
func Find(dataDir string) ([]Pod, error) {
	dataDir, err := machine.Resolve(dataDir)
	if err != nil {
		return nil, err
	}
	l := &search{dataDir: dataDir, found: map[string]*Pod{}}
	if err := errors.Join(l.byRecords(), l.byShims(), l.byGroups()); err != nil {
		return nil, fmt.Errorf("find pods of %s: %w", dataDir, err)
	}
	var found []Pod
	for _, id := range slices.Sorted(maps.Keys(l.found)) {
		found = append(found, *l.found[id])
	}
	return found, nil
}

// Remove ends these pods at once and takes away their processes, and with them their namespaces, their cgroups,
// interfaces and mounts. It returns what there was of cgroups and mounts. The data directory's files stay.
func Remove(dataDir string) (pods []Pod, cgroups, mounts []string, err error) {
	if pods, err = Find(dataDir); err != nil {
		return nil, nil, nil, err
	}
	for i := range pods {
		removed, failed := pods[i].end()
		cgroups, err = append(cgroups, removed...), errors.Join(err, failed)
	}
	trimmed, trimErr := trimRoots()
	resolved, resolveErr := machine.Resolve(dataDir)
	err = errors.Join(err, trimErr, resolveErr)
	if resolveErr == nil {
		for _, dir := range []string{"sandboxes", trial.Dir} {
			unmounted, unmountErr := machine.UnmountBelow(filepath.Join(resolved, dir))
			mounts, err = append(mounts, unmounted...), errors.Join(err, unmountErr)
		}
	}
	return pods, append(cgroups, trimmed...), mounts, err
}

// trimRoots removes the groups of nodes of this machine on which nothing runs, if nobody is about to change that.
func trimRoots() (removed []string, err error) {
	roots, err := cgroup.Roots(cgroup.NodePrefix)
	for _, root := range roots {
		idle, idleErr := isIdle(root)
		group, openErr := cgroup.Open(root)
		if err = errors.Join(err, idleErr, openErr); !idle || openErr != nil {
			continue
		}
		if group.TrimEmpty(); group.Changed().IsZero() {
			removed = append(removed, root)
		}
	}
	return removed, err
}

// isIdle tells whether all groups at and below root have been empty for a while.
func isIdle(root string) (bool, error) {
	pods, err := cgroup.FindFunc(root, isID.MatchString)
	if err != nil {
		return false, err
	}
	for _, at := range append(pods, root) {
		group, err := cgroup.Open(at)
		if err != nil {
			return false, err
		}
		pids, err := group.Processes()
		if err != nil || len(pids) > 0 || at != root && time.Since(group.Changed()) < groupSettleTime {
			return false, err
		}
	}
	return true, nil
}

// search is one; dataDir is resolved.
type search struct {
	dataDir string
	found   map[string]*Pod
}

func (l *search) pod(id string) *Pod {
	if l.found[id] == nil {
		l.found[id] = &Pod{ID: id, Name: id}
	}
	return l.found[id]
}

func (l *search) byRecords() error {
	entries, err := os.ReadDir(filepath.Join(l.dataDir, "sandboxes"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, entry := range entries {
		if !isID.MatchString(entry.Name()) {
			continue
		}
		pod := l.pod(entry.Name())
		if config := configIn(filepath.Join(l.dataDir, "sandboxes", entry.Name(), "record.json")); config != nil {
			pod.Name, pod.UID = config.GetMetadata().GetNamespace()+"/"+config.GetMetadata().GetName(), config.GetMetadata().GetUid()
		}
	}
	return err
}

// configIn is the configuration in a record of the runtime, nil if it is damaged.
func configIn(path string) *runtimeapi.PodSandboxConfig {
	var record struct{ Config []byte }
	var config runtimeapi.PodSandboxConfig
	text, err := os.ReadFile(path)
	if err != nil || json.Unmarshal(text, &record) != nil || proto.Unmarshal(record.Config, &config) != nil {
		return nil
	}
	return &config
}

func (l *search) byShims() error {
	processes, err := machine.Processes()
	for _, p := range processes {
		if id, known := l.ofShim(p); known && id != "" {
			l.pod(id).shim = p
		}
	}
	return err
}

// ofShim tells whether p is a shim, and which of our pods' it is.
func (l *search) ofShim(p machine.Process) (id string, isShim bool) {
	args := p.Args()
	if len(args) != 2 || filepath.Base(args[0]) != shim.Name {
		return "", false
	}
	dir, err := machine.Resolve(args[1])
	if err != nil || filepath.Dir(dir) != filepath.Join(l.dataDir, "sandboxes") || !p.Sees(l.dataDir) {
		return "", true
	}
	return filepath.Base(dir), true
}

// byGroups looks at the groups of this machine, also those of kubelets: whose they are, only what runs in them can tell.
func (l *search) byGroups() error {
	paths, err := cgroup.FindFunc("/", isID.MatchString)
	for _, at := range paths {
		group, openErr := cgroup.Open(at)
		if openErr != nil {
			err = errors.Join(err, openErr)
			continue
		}
		if id := path.Base(at); l.found[id] != nil || l.ownGroup(group) {
			l.pod(id).group = append(l.pod(id).group, at)
		}
	}
	return err
}

// ownGroup tells by what runs in a group whether it is of this data directory.
func (l *search) ownGroup(group *cgroup.Group) bool {
	pids, err := group.Processes()
	if err != nil {
		return false
	}
	for _, pid := range pids {
		if id, isShim := l.ofShim(machine.Process(pid)); isShim {
			return id != ""
		}
	}
	return slices.ContainsFunc(pids, func(pid int) bool {
		upper := machine.Process(pid).RootUpper()
		if upper == "" {
			return false // it has the host's root, or has ended
		}
		upper, err := machine.Resolve(upper)
		return err == nil && machine.Below(upper, filepath.Join(l.dataDir, "containers"))
	})
}

// end kills what runs and removes its groups and interface.
func (p *Pod) end() (cgroups []string, err error) {
	for _, at := range p.group {
		if failed := cgroup.End(at); failed != nil {
			err = errors.Join(err, failed)
			continue
		}
		cgroups = append(cgroups, at)
	}
	if p.shim != 0 { // it may not have been in its group yet
		err = errors.Join(err, killProcess(int(p.shim)))
	}
	return cgroups, errors.Join(err, network.New(network.Config{}).Forget(p.ID))
}

// killProcess returns when the process has ended.
func killProcess(pid int) error {
	handle, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("end process %d: %w", pid, err)
	}
	defer unix.Close(handle)
	if args := machine.Process(pid).Args(); len(args) == 0 || filepath.Base(args[0]) != shim.Name {
		return nil // it has ended, and another one has its number
	}
	if err := unix.PidfdSendSignal(handle, syscall.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("end process %d: %w", pid, err)
	}
	poll := []unix.PollFd{{Fd: int32(handle), Events: unix.POLLIN}}
	if n, err := unix.Poll(poll, int(cgroup.KillTimeMax/time.Millisecond)); n == 0 {
		return fmt.Errorf("end process %d: it is still there after %v: %w", pid, cgroup.KillTimeMax, err)
	}
	return nil
}
