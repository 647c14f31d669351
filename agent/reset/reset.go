package reset

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/agent/base/machine"
	"github.com/setpoint-io/setpoint/agent/net/network"
	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/leftovers"
	"github.com/setpoint-io/setpoint/agent/runtime/logs"
	"github.com/setpoint-io/setpoint/agent/runtime/podconfig"
	"github.com/setpoint-io/setpoint/agent/volumes/local"
	"github.com/setpoint-io/setpoint/internal/process"
	"github.com/setpoint-io/setpoint/internal/trust"
)

// What a Thing may be. A pod's namespaces go with its processes and have no names.
const (
	Pod       = "pod"
	Cgroup    = "cgroup"
	Mount     = "mount"
	Network   = "network"
	Directory = "directory"
)

// Thing is something on this machine.
type Thing struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	// Why it was kept.
	Why string `json:"why,omitempty"`
}

// Report tells what a reset has taken away and what it has left.
type Report struct {
	DataDir string  `json:"dataDir"`
	Removed []Thing `json:"removed"`
	Kept    []Thing `json:"kept,omitempty"`
}

var (
	// ErrNotRoot says that pods, which root has made, only root can end.
	ErrNotRoot = errors.New("it has been a node with containers: run it as root (sudo)")
	// ErrNoDataDir says that somebody else's files would be deleted.
	ErrNoDataDir = errors.New("this is no data directory of setpoint: it has no server.lock and no agent.lock")
	// ErrMounted says that files would be deleted that lie elsewhere.
	ErrMounted = errors.New("unmount it first: files of another file system are not deleted")
)

// Plan is what a reset would do.
type Plan struct {
	// DataDir is resolved. Exists tells whether it is there.
	DataDir string
	Exists  bool
	// Pods are "namespace/name", or ids.
	Pods []string
	// Network tells whether the pod network would go.
	Network bool
}

// Nothing tells whether there is nothing to do.
func (p *Plan) Nothing() bool { return !p.Exists && len(p.Pods) == 0 && !p.Network }

// Look finds out what a reset of the data directory would do, or why it must not.
func Look(dataDir string) (*Plan, error) {
	dir, err := machine.Resolve(dataDir)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(notRunning(dir), checkDir(dir)); err != nil {
		return nil, err
	}
	return planOf(dir)
}

// LookAhead is Look where what runs will be stopped before.
func LookAhead(dataDir string) (*Plan, error) {
	dir, err := machine.Resolve(dataDir)
	if err != nil {
		return nil, err
	}
	if err := checkDir(dir); err != nil {
		return nil, err
	}
	return planOf(dir)
}

func planOf(dir string) (*Plan, error) {
	p := &Plan{DataDir: dir, Exists: exists(dir)}
	if os.Geteuid() != 0 {
		return p, nil
	}
	pods, err := leftovers.Find(runtimeDir(dir))
	if err != nil {
		return nil, err
	}
	for _, pod := range pods {
		p.Pods = append(p.Pods, pod.Name)
	}
	p.Network = network.Installed(network.DefaultBridge) && otherAgent() == ""
	return p, nil
}

// exists tells whether there is a directory with something in it or that can be removed: not one that is empty and on
// which a file system is mounted.
func exists(dir string) bool {
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) > 0 {
		return err == nil
	}
	mounts, err := machine.MountsBelow(dir)
	return err == nil && len(mounts) == 0
}

// Run takes everything away. The Report tells what was done before an error, too.
func Run(dataDir string) (*Report, error) {
	plan, err := Look(dataDir)
	if err != nil {
		return nil, err
	}
	r := &Report{DataDir: plan.DataDir, Removed: []Thing{}}
	if plan.Nothing() {
		return r, nil // what others have left on this machine is not ours to tidy up
	}
	if plan.Exists {
		for _, role := range []string{process.ServerRole, process.AgentRole} {
			unlock, err := process.Lock(plan.DataDir, role)
			if err != nil {
				return nil, err
			}
			defer unlock()
		}
	}
	if os.Geteuid() == 0 {
		if err := r.machine(); err != nil {
			return r, err
		}
	}
	r.keepTrust()
	return r, r.directory()
}

// keepTrust tells of the folder that the servers of a cluster share, to which a server's kubeconfig is a link.
func (r *Report) keepTrust() {
	linked, err := os.Readlink(filepath.Join(r.DataDir, trust.AdminKubeconfig))
	if err == nil {
		r.Kept = append(r.Kept, Thing{Kind: Directory, Name: filepath.Dir(linked), Why: "the trust folder: other servers have the same"})
	}
}

func runtimeDir(dataDir string) string { return filepath.Join(dataDir, "runtime") }

func (r *Report) removed(kind string, names ...string) {
	for _, name := range names {
		r.Removed = append(r.Removed, Thing{Kind: kind, Name: name})
	}
}

// machine takes away what is not a file of the data directory.
func (r *Report) machine() error {
	pods, cgroups, mounts, err := leftovers.Remove(runtimeDir(r.DataDir))
	for _, pod := range pods {
		r.removed(Pod, pod.Name)
	}
	err = errors.Join(err, r.logs(pods))
	r.removed(Cgroup, cgroups...)
	var volumes []string
	var volumesErr error
	for _, dir := range []string{"pods", "plugins"} { // CSI drivers stage volumes in the second
		unmounted, err := machine.UnmountBelow(filepath.Join(r.DataDir, dir))
		volumes, volumesErr = append(volumes, unmounted...), errors.Join(volumesErr, err)
	}
	r.removed(Mount, append(mounts, volumes...)...)
	devicesErr := local.Detach(podconfig.Dirs{Root: r.DataDir}.LocalVolumes())
	return errors.Join(err, volumesErr, devicesErr, r.network())
}

// logs removes those of pods that the node had outside of the data directory, and the links to them.
func (r *Report) logs(pods []leftovers.Pod) error {
	former, err := podconfig.ReadFormerLogs(r.DataDir)
	dirs := podconfig.Dirs{Root: r.DataDir, FormerLogs: former}
	for _, pod := range pods {
		folders, lookErr := dirs.LogFolders(types.UID(pod.UID))
		err = errors.Join(err, lookErr)
		for _, folder := range slices.DeleteFunc(folders, r.holds) {
			if failed := os.RemoveAll(folder); failed != nil {
				err = errors.Join(err, failed)
				continue
			}
			r.removed(Directory, folder)
		}
	}
	return errors.Join(err, logs.Links{Dir: logs.MachineLinks}.Prune(dirs.LogRoots()...))
}

// holds reports whether a path is in the data directory, which goes as a whole.
func (r *Report) holds(path string) bool { return machine.Below(path, r.DataDir) }

func (r *Report) network() error {
	if !network.Installed(network.DefaultBridge) {
		return nil
	}
	if user := cmp.Or(otherAgent(), otherPods(network.DefaultBridge)); user != "" {
		r.Kept = append(r.Kept, Thing{Kind: Network, Name: "bridge " + network.DefaultBridge, Why: user})
		return nil
	}
	things, err := network.Uninstall(network.DefaultBridge)
	r.removed(Network, things...)
	return err
}

// directory deletes the data directory, if nothing is mounted in it any more. One that is a mount itself is emptied.
func (r *Report) directory() error {
	entries, err := os.ReadDir(r.DataDir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	mounts, err := machine.MountsBelow(r.DataDir)
	if err != nil {
		return err
	}
	if len(mounts) == 0 {
		if err := removeAll(r.DataDir, entries); err != nil {
			return err
		}
		r.removed(Directory, r.DataDir)
		return nil
	}
	if mounts[0] != r.DataDir {
		return fmt.Errorf("%s is still mounted: %w", mounts[0], ErrMounted)
	}
	for _, entry := range entries {
		path := filepath.Join(r.DataDir, entry.Name())
		if err := os.RemoveAll(path); err != nil {
			return err
		}
		r.removed(Directory, path)
	}
	r.Kept = append(r.Kept, Thing{Kind: Directory, Name: r.DataDir, Why: "it is empty, and a file system is mounted there"})
	return nil
}

// removeAll deletes the data directory with its entries, the locks last: what is left if it is killed is known to be ours.
func removeAll(dir string, entries []os.DirEntry) error {
	for _, entry := range entries {
		if filepath.Ext(entry.Name()) == ".lock" {
			continue
		}
		if err := os.RemoveAll(filepath.Join(dir, entry.Name())); err != nil {
			return err
		}
	}
	return os.RemoveAll(dir)
}
