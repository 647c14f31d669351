package powercut

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// node is a file or a directory. A file that was opened has its contents in
// memory; the disk has them as of the last sync.
type node struct {
	fs.LoopbackNode
	system *FileSystem

	mu    sync.Mutex
	disk  *os.File
	live  []byte
	dirty map[int64]struct{} // numbers of sectors written since the last sync
}

var (
	_ fs.NodeOpener    = (*node)(nil)
	_ fs.NodeCreater   = (*node)(nil)
	_ fs.NodeGetattrer = (*node)(nil)
	_ fs.NodeSetattrer = (*node)(nil)
	_ fs.NodeRenamer   = (*node)(nil)
	_ fs.NodeUnlinker  = (*node)(nil)
	_ fs.NodeMkdirer   = (*node)(nil)
	_ fs.NodeFsyncer   = (*node)(nil)
)

// path is where the disk has it.
func (n *node) path() string { return filepath.Join(n.RootData.Path, n.Path(n.Root())) }

// load reads the file into memory, once.
func (n *node) load(path string) syscall.Errno {
	if n.disk != nil {
		return 0
	}
	disk, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return fs.ToErrno(err)
	}
	live, err := os.ReadFile(path)
	if err != nil {
		return fs.ToErrno(err)
	}
	n.disk, n.live = disk, live
	n.system.files[n] = struct{}{}
	return 0
}

// loaded runs do with the contents in memory, under the locks.
func (n *node) loaded(path string, do func() syscall.Errno) syscall.Errno {
	n.system.mu.Lock()
	defer n.system.mu.Unlock()
	n.mu.Lock()
	defer n.mu.Unlock()
	if errno := n.load(path); errno != 0 {
		return errno
	}
	return do()
}

// Open takes the file into memory.
func (n *node) Open(_ context.Context, _ uint32) (fs.FileHandle, uint32, syscall.Errno) {
	return &handle{n}, 0, n.loaded(n.path(), func() syscall.Errno { return 0 })
}

// Create makes the name on the disk at once.
func (n *node) Create(ctx context.Context, name string, flags, mode uint32, out *fuse.EntryOut) (*fs.Inode,
	fs.FileHandle, uint32, syscall.Errno) {
	var child *fs.Inode
	errno := n.system.change(func() syscall.Errno {
		inode, file, _, errno := n.LoopbackNode.Create(ctx, name, flags, mode, out)
		if errno != 0 {
			return errno
		}
		child = inode
		return file.(fs.FileReleaser).Release(ctx)
	})
	if errno != 0 {
		return nil, nil, 0, errno
	}
	created := child.Operations().(*node)
	path := filepath.Join(n.path(), name) // it has no place in the tree before the answer
	return child, &handle{created}, 0, created.loaded(path, func() syscall.Errno { return 0 })
}

// Getattr tells the size in memory.
func (n *node) Getattr(ctx context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	errno := n.LoopbackNode.Getattr(ctx, nil, out)
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.disk == nil {
		return errno
	}
	if errno == syscall.ENOENT { // removed while open
		out.Mode, errno = syscall.S_IFREG|0o600, 0
	}
	out.Size = uint64(len(n.live))
	return errno
}

// Setattr changes the size in memory and all else on the disk.
func (n *node) Setattr(ctx context.Context, _ fs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	if size, ok := in.GetSize(); ok {
		if errno := n.loaded(n.path(), func() syscall.Errno { return n.resize(int64(size)) }); errno != 0 {
			return errno
		}
		in.Valid &^= fuse.FATTR_SIZE
	}
	errno := n.system.change(func() syscall.Errno { return n.LoopbackNode.Setattr(ctx, nil, in, out) })
	if errno != 0 {
		return errno
	}
	return n.Getattr(ctx, nil, out)
}

func (n *node) resize(size int64) syscall.Errno {
	if n.system.cut {
		return syscall.EIO
	}
	if size > int64(len(n.live)) {
		n.live = append(n.live, make([]byte, size-int64(len(n.live)))...)
		return 0
	}
	n.live = n.live[:size]
	return 0
}

// Rename is durable at once.
func (n *node) Rename(ctx context.Context, name string, parent fs.InodeEmbedder, newName string, flags uint32) syscall.Errno {
	return n.system.change(func() syscall.Errno {
		return n.LoopbackNode.Rename(ctx, name, parent, newName, flags)
	})
}

// Unlink is durable at once.
func (n *node) Unlink(ctx context.Context, name string) syscall.Errno {
	return n.system.change(func() syscall.Errno { return n.LoopbackNode.Unlink(ctx, name) })
}

// Mkdir is durable at once.
func (n *node) Mkdir(ctx context.Context, name string, mode uint32, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	var child *fs.Inode
	errno := n.system.change(func() (errno syscall.Errno) {
		child, errno = n.LoopbackNode.Mkdir(ctx, name, mode, out)
		return errno
	})
	return child, errno
}

// Fsync is where what was written becomes durable; fdatasync comes here too. A
// directory has nothing left to do.
func (n *node) Fsync(context.Context, fs.FileHandle, uint32) syscall.Errno {
	if errno := n.system.trouble(); errno != 0 {
		return errno
	}
	return n.system.change(func() syscall.Errno {
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.disk == nil {
			return 0
		}
		return fs.ToErrno(n.sync())
	})
}

// sync brings the file to the disk.
func (n *node) sync() error {
	if err := n.keep(func() bool { return true }); err != nil {
		return err
	}
	return n.disk.Truncate(int64(len(n.live)))
}

// keep writes those of the dirty sectors to the disk that keeps says, in order.
func (n *node) keep(keeps func() bool) error {
	sectors := make([]int64, 0, len(n.dirty))
	for sector := range n.dirty {
		sectors = append(sectors, sector)
	}
	slices.Sort(sectors)
	for _, sector := range sectors {
		start, end := sector*sectorBytes, min((sector+1)*sectorBytes, int64(len(n.live)))
		if start >= end || !keeps() {
			continue
		}
		if _, err := n.disk.WriteAt(n.live[start:end], start); err != nil {
			return err
		}
	}
	clear(n.dirty)
	return nil
}

func (n *node) close() {
	_ = n.disk.Close()
	n.disk = nil
}
