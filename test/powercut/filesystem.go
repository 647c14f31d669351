package powercut

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// sectorBytes is what a disk writes whole or not at all.
const sectorBytes = 512

// FileSystem is a mounted directory whose power can be cut. Its methods may be
// called from many goroutines.
type FileSystem struct {
	server *fuse.Server

	// mu is held for reading by every change, for writing by the cut, so that a
	// change is before the cut or does not happen.
	mu  sync.RWMutex
	cut bool
	// syncTime and syncError are what every sync takes and fails with: nothing, unless SlowSyncs or FailSyncs was called.
	syncTime  time.Duration
	syncError syscall.Errno
	files     map[*node]struct{} // those with contents in memory
}

// Mount shows the directory disk at the directory mountPoint. It needs root.
func Mount(disk, mountPoint string) (*FileSystem, error) {
	f := &FileSystem{files: map[*node]struct{}{}}
	var stat syscall.Stat_t
	if err := syscall.Stat(disk, &stat); err != nil {
		return nil, fmt.Errorf("the disk: %w", err)
	}
	root := &fs.LoopbackRoot{Path: disk, Dev: uint64(stat.Dev)}
	root.NewNode = func(data *fs.LoopbackRoot, _ *fs.Inode, _ string, _ *syscall.Stat_t) fs.InodeEmbedder {
		return &node{LoopbackNode: fs.LoopbackNode{RootData: data}, system: f, dirty: map[int64]struct{}{}}
	}
	top := root.NewNode(root, nil, "", &stat)
	root.RootNode = top
	server, err := fs.Mount(mountPoint, top, &fs.Options{MountOptions: fuse.MountOptions{DirectMountStrict: true, FsName: "powercut"}})
	if err != nil {
		return nil, fmt.Errorf("mounting: %w", err)
	}
	f.server = server
	return f, nil
}

// Cut ends the power. Of what was not synced, each sector survives if the coin of
// the seed says so; every later change fails with EIO. Reading goes on, for whoever
// has yet to be killed.
func (f *FileSystem) Cut(seed uint64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cut = true
	coin := rand.New(rand.NewPCG(seed, 0))
	// One cut keeps nothing, another all, most some.
	kept := coin.Float64()*1.4 - 0.2
	for n := range f.files {
		if err := n.keep(func() bool { return coin.Float64() < kept }); err != nil {
			return fmt.Errorf("cutting the power: %w", err)
		}
	}
	return nil
}

// SlowSyncs makes every sync from now on take so long; 0 ends it. Syncs under way keep their time.
func (f *FileSystem) SlowSyncs(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.syncTime = d
}

// FailSyncs makes every sync from now on fail and bring nothing to the disk; 0 ends it.
func (f *FileSystem) FailSyncs(errno syscall.Errno) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.syncError = errno
}

// trouble waits as long as a sync takes, without a lock, and says what it fails with.
func (f *FileSystem) trouble() syscall.Errno {
	f.mu.RLock()
	d := f.syncTime
	f.mu.RUnlock()
	time.Sleep(d)
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.syncError
}

// Unmount waits for nobody: the processes that used the files must have ended.
func (f *FileSystem) Unmount() error {
	err := f.server.Unmount()
	f.mu.Lock()
	defer f.mu.Unlock()
	for n := range f.files {
		n.close()
	}
	return err
}

// change runs a change unless the power is gone.
func (f *FileSystem) change(do func() syscall.Errno) syscall.Errno {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.cut {
		return syscall.EIO
	}
	return do()
}
