package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/setpoint-io/setpoint/agent/base/private"
	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/cgroup"
	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/shim"
)

const (
	// damagedMax is how many damaged records are kept for whoever asks what happened; the oldest go first.
	damagedMax = 20
	// shutdownTimeMax bounds asking a shim to end; after it, it is killed.
	shutdownTimeMax = 2 * time.Second
)

// errForeignRecord says that a record is about something else than the folder it lies in.
var errForeignRecord = errors.New("the record is not of this folder")

// check says whether the record, read from the folder called name, can be acted on: what it says is killed and removed.
func (s *sandboxRecord) check(name string) error { return checkIdentity(s.ID, s.CgroupPath, name) }

func (c *containerRecord) check(name string) error { return checkIdentity(c.ID, c.CgroupPath, name) }

func checkIdentity(id, cgroupPath, name string) error {
	if id != name || filepath.Base(cgroupPath) != id || filepath.Clean(cgroupPath) != cgroupPath || !filepath.IsAbs(cgroupPath) {
		return fmt.Errorf("%w: it says %q and %q", errForeignRecord, id, cgroupPath)
	}
	return nil
}

// abandonSandbox ends whatever runs of a sandbox whose record cannot be read, or was never written, and removes it: its
// pod will be made anew, beside which nothing of the old one may go on. The folder's name is the sandbox's id, and so are
// its cgroup's and its interface's names. One that cannot be ended stays in its folder and is tried again at the next
// start; it costs nobody else.
func (r *Runtime) abandonSandbox(id string, cause error) {
	dir := filepath.Join(r.sandboxesDir(), id)
	ctx, cancel := context.WithTimeout(r.ctx, shutdownTimeMax)
	defer cancel()
	_ = shim.NewClient(dir).Shutdown(ctx) // it may be dead, or be killed with its group
	err := errors.Join(r.endGroups(id), unmountShm(dir), r.network.Forget(id))
	if err == nil {
		err = errors.Join(r.setAside(dir, cause), os.RemoveAll(dir))
	}
	r.tellAbandoned("sandbox", id, cause, err)
}

// abandonContainer is the same for one container.
func (r *Runtime) abandonContainer(id string, cause error) {
	dir := filepath.Join(r.containersDir(), id)
	err := r.endGroups(id)
	if err == nil {
		err = errors.Join(r.setAside(dir, cause), os.RemoveAll(dir))
	}
	r.tellAbandoned("container", id, cause, err)
}

func (r *Runtime) tellAbandoned(kind, id string, cause, err error) {
	switch {
	case err != nil:
		r.config.Logger.Error(kind+" cannot be removed", "id", id, "why", cause, "err", err)
	case errors.Is(cause, os.ErrNotExist):
		r.config.Logger.Warn("unfinished "+kind+" removed", "id", id)
	default:
		r.config.Logger.Error(kind+" ended: its record is damaged", "id", id, "err", cause, "kept", r.damagedDir())
	}
}

// endGroups kills everything in the groups called name, and removes them.
func (r *Runtime) endGroups(name string) error {
	root := r.cgroupRoot()
	if r.config.GivenCgroups {
		root = "/"
	}
	paths, err := cgroup.Find(root, name)
	for _, path := range paths {
		err = errors.Join(err, cgroup.End(path))
	}
	return err
}

func unmountShm(sandboxDir string) error {
	dir := filepath.Join(sandboxDir, "shm")
	if !isMountPoint(dir, sandboxDir) {
		return nil
	}
	return os.NewSyscallError("unmount "+dir, unix.Unmount(dir, unix.MNT_DETACH))
}

func (r *Runtime) damagedDir() string { return filepath.Join(r.config.DataDir, "damaged") }

// setAside keeps a damaged record of the folder, if there is one.
func (r *Runtime) setAside(dir string, cause error) error {
	if errors.Is(cause, os.ErrNotExist) {
		return nil
	}
	if err := private.Folder(r.damagedDir()); err != nil {
		return err
	}
	kept, err := os.ReadDir(r.damagedDir())
	if err != nil {
		return err
	}
	slices.SortFunc(kept, func(a, b os.DirEntry) int { return strings.Compare(a.Name(), b.Name()) }) // their names begin with the time
	for i := range max(0, len(kept)-damagedMax+1) {
		err = errors.Join(err, os.Remove(filepath.Join(r.damagedDir(), kept[i].Name())))
	}
	name := time.Now().UTC().Format("20060102-150405-") + filepath.Base(dir) + ".json"
	renameErr := os.Rename(filepath.Join(dir, recordName), filepath.Join(r.damagedDir(), name))
	if errors.Is(renameErr, os.ErrNotExist) {
		renameErr = nil
	}
	return errors.Join(err, renameErr)
}
