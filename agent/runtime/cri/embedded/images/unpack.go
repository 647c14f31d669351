package images

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	whiteoutPrefix  = ".wh."
	opaqueMarker    = ".wh..wh..opq"
	opaqueAttribute = "trusted.overlay.opaque"
	xattrRecord     = "SCHILY.xattr."
)

// copyBufferBytes is how much of a file is copied at a time.
const copyBufferBytes = 128 << 10

// unpacker writes one layer's tar below root. Every path is resolved by os.Root: neither ".." nor a symlink of the
// layer's own making leads out.
type unpacker struct {
	root   *os.Root
	limits limits
	room   *room
	buffer []byte
	// parent is the folder parentName, kept open: most entries lie beside the one before them.
	parent     *os.Root
	parentName string

	bytes       uint64
	entries     int
	folderBytes int
	// Directories get their times last: adding entries changes them.
	dirTimes map[string]time.Time
}

// unpack writes the layer into the existing directory of the room and returns its size.
func unpack(room *room, limits limits, layer io.Reader) (uint64, error) {
	root, err := os.OpenRoot(room.dir)
	if err != nil {
		return 0, err
	}
	defer root.Close()
	u := &unpacker{root: root, limits: limits, room: room, buffer: make([]byte, copyBufferBytes), dirTimes: map[string]time.Time{}}
	defer u.leave()
	for archive := tar.NewReader(layer); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return 0, fmt.Errorf("read layer: %w", err)
		}
		if err := u.entry(header, archive); err != nil {
			return 0, fmt.Errorf("unpack %.200s: %w", header.Name, err)
		}
	}
	for name, modified := range u.dirTimes {
		if err := root.Chtimes(name, modified, modified); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return 0, err
		}
	}
	return u.bytes, nil
}

// kinds are those of entries that are files.
var kinds = []byte{tar.TypeDir, tar.TypeReg, tar.TypeSymlink, tar.TypeLink, tar.TypeChar, tar.TypeBlock, tar.TypeFifo}

// entryName is a path in the layer, from a name in its tar.
func entryName(name string) string { return strings.TrimPrefix(path.Clean("/"+name), "/") }

func (u *unpacker) entry(header *tar.Header, content io.Reader) error {
	if err := u.count(header); err != nil {
		return err
	}
	if !slices.Contains(kinds, header.Typeflag) {
		return nil // formats grow: an unknown entry type carries no file
	}
	name := entryName(header.Name)
	if strings.HasPrefix(path.Clean(header.Name), "..") {
		return fmt.Errorf("path leads out of the layer: %w", fs.ErrInvalid)
	}
	if name == "" {
		u.dirTimes["."] = header.ModTime
		return setMode(u.root, ".", header)
	}
	dir, base := path.Dir(name), path.Base(name)
	at, err := u.in(dir)
	if err != nil {
		return err
	}
	if strings.HasPrefix(base, whiteoutPrefix) {
		return whiteout(at, base)
	}
	if err := removeEarlier(at, base, header); err != nil {
		return err
	}
	if err := u.create(at, base, header, content); err != nil {
		return err
	}
	if header.Typeflag == tar.TypeDir {
		u.dirTimes[name] = header.ModTime
	}
	return finish(at, base, header)
}

// count refuses a layer that goes on for too long.
func (u *unpacker) count(header *tar.Header) error {
	if u.entries++; u.entries > u.limits.entries {
		return fmt.Errorf("%w: a layer of more than %d files", errTooLarge, u.limits.entries)
	}
	if header.Typeflag == tar.TypeReg {
		u.bytes += uint64(max(header.Size, 0))
	}
	if u.bytes > u.limits.bytes {
		return fmt.Errorf("%w: a layer of more than %d bytes", errTooLarge, u.limits.bytes)
	}
	if header.Typeflag == tar.TypeDir {
		u.folderBytes += len(header.Name)
	}
	if u.folderBytes > u.limits.folderBytes {
		return fmt.Errorf("%w: a layer whose folders have names of more than %d bytes", errTooLarge, u.limits.folderBytes)
	}
	if len(header.Name) > nameBytesMax || len(header.Linkname) > nameBytesMax {
		return fmt.Errorf("a name of more than %d bytes: %w", nameBytesMax, unix.ENAMETOOLONG)
	}
	return u.room.take(roomEntryBytes * int64(1+strings.Count(header.Name, "/"))) // its folders may be new
}

// in opens a folder of the layer, and makes it if need be.
func (u *unpacker) in(dir string) (*os.Root, error) {
	if dir == "." {
		return u.root, nil
	}
	if u.parent != nil && u.parentName == dir {
		return u.parent, nil
	}
	u.leave()
	if err := u.root.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	opened, err := u.root.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	u.parent, u.parentName = opened, dir
	return opened, nil
}

// leave closes the folder that is open. What is removed lies in it, so it is never that one itself.
func (u *unpacker) leave() {
	if u.parent != nil {
		_ = u.parent.Close() // it was opened for its path only
	}
	u.parent = nil
}

// whiteout translates the image format's markers into overlayfs's own: a 0/0 character device hides a name, an
// attribute makes a directory opaque.
func whiteout(at *os.Root, base string) error {
	if base == opaqueMarker {
		return withFD(at, ".", func(fd int) error { return unix.Fsetxattr(fd, opaqueAttribute, []byte("y"), 0) })
	}
	hidden := strings.TrimPrefix(base, whiteoutPrefix)
	if hidden == "" || hidden == "." || hidden == ".." {
		return fmt.Errorf("whiteout of %q: %w", hidden, fs.ErrInvalid)
	}
	if err := at.RemoveAll(hidden); err != nil {
		return err
	}
	return withFD(at, ".", func(fd int) error { return unix.Mknodat(fd, hidden, unix.S_IFCHR, 0) })
}

// withFD opens a file or folder for what os.Root does not have.
func withFD(at *os.Root, name string, do func(fd int) error) error {
	file, err := at.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(do(int(file.Fd())), file.Close())
}

// removeEarlier removes what an earlier entry of the same name left, unless both are directories.
func removeEarlier(at *os.Root, base string, header *tar.Header) error {
	info, err := at.Lstat(base)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.IsDir() && header.Typeflag == tar.TypeDir {
		return nil
	}
	return at.RemoveAll(base)
}

func (u *unpacker) create(at *os.Root, base string, header *tar.Header, content io.Reader) error {
	switch header.Typeflag {
	case tar.TypeDir:
		err := at.Mkdir(base, 0o755)
		if errors.Is(err, fs.ErrExist) {
			return nil
		}
		return err
	case tar.TypeReg:
		return u.file(at, base, content)
	case tar.TypeSymlink:
		return at.Symlink(header.Linkname, base)
	case tar.TypeLink:
		return u.root.Link(entryName(header.Linkname), entryName(header.Name))
	default:
		return node(at, base, header)
	}
}

func (u *unpacker) file(at *os.Root, base string, content io.Reader) error {
	file, err := at.OpenFile(base, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.CopyBuffer(roomy{file, u.room}, content, u.buffer)
	return errors.Join(err, file.Close())
}

// roomy is a file that is written while there is room.
type roomy struct {
	file *os.File
	room *room
}

// Write implements io.Writer.
func (r roomy) Write(p []byte) (int, error) {
	if err := r.room.take(int64(len(p))); err != nil {
		return 0, err
	}
	return r.file.Write(p)
}

func node(at *os.Root, base string, header *tar.Header) error {
	modes := map[byte]uint32{tar.TypeChar: unix.S_IFCHR, tar.TypeBlock: unix.S_IFBLK, tar.TypeFifo: unix.S_IFIFO}
	device := unix.Mkdev(uint32(header.Devmajor), uint32(header.Devminor))
	return withFD(at, ".", func(fd int) error { return unix.Mknodat(fd, base, modes[header.Typeflag]|0o600, int(device)) })
}

// finish sets owner, mode, attributes and time: owner first, because changing it clears set-user-id and capabilities.
func finish(at *os.Root, base string, header *tar.Header) error {
	if header.Typeflag == tar.TypeLink {
		return nil // it is the other name's file
	}
	if err := at.Lchown(base, header.Uid, header.Gid); err != nil {
		return err
	}
	if header.Typeflag == tar.TypeSymlink {
		return nil
	}
	if err := setMode(at, base, header); err != nil {
		return err
	}
	if err := setAttributes(at, base, header); err != nil || header.Typeflag == tar.TypeDir {
		return err
	}
	return at.Chtimes(base, header.ModTime, header.ModTime)
}

func setMode(at *os.Root, base string, header *tar.Header) error {
	return at.Chmod(base, header.FileInfo().Mode()&(fs.ModePerm|fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky))
}

func setAttributes(at *os.Root, base string, header *tar.Header) error {
	if header.Typeflag != tar.TypeReg && header.Typeflag != tar.TypeDir {
		return nil
	}
	for key, value := range header.PAXRecords {
		attribute, ok := strings.CutPrefix(key, xattrRecord)
		// trusted.overlay.* in a layer would speak to our overlay in the image's name.
		if !ok || strings.HasPrefix(attribute, "trusted.") {
			continue
		}
		err := withFD(at, base, func(fd int) error { return unix.Fsetxattr(fd, attribute, []byte(value), 0) })
		if err != nil && !errors.Is(err, unix.ENOTSUP) {
			return err
		}
	}
	return nil
}
