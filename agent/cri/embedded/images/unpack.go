package images

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
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

// layerBytesMax bounds what one layer may unpack to; more is an error, not a full disk.
const layerBytesMax = 32 << 30

// errLayerTooLarge says that a layer exceeds layerBytesMax.
var errLayerTooLarge = errors.New("layer unpacks to more than 32 GiB")

// unpacker writes one layer's tar below root. Every path is resolved by os.Root: neither ".." nor a symlink of the
// layer's own making leads out.
type unpacker struct {
	root  *os.Root
	bytes uint64
	// Directories get their times last: adding entries changes them.
	dirTimes map[string]time.Time
}

// unpack writes the layer into the existing directory dir and returns its size.
func unpack(dir string, layer io.Reader) (uint64, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return 0, err
	}
	defer root.Close()
	u := &unpacker{root: root, dirTimes: map[string]time.Time{}}
	for archive := tar.NewReader(layer); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return 0, fmt.Errorf("read layer: %w", err)
		}
		if err := u.entry(header, archive); err != nil {
			return 0, fmt.Errorf("unpack %s: %w", header.Name, err)
		}
	}
	for name, modified := range u.dirTimes {
		if err := root.Chtimes(name, modified, modified); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return 0, err
		}
	}
	return u.bytes, nil
}

// entryName is a path in the layer, from a name in its tar.
func entryName(name string) string { return strings.TrimPrefix(path.Clean("/"+name), "/") }

func (u *unpacker) entry(header *tar.Header, content io.Reader) error {
	name := entryName(header.Name)
	if strings.HasPrefix(path.Clean(header.Name), "..") {
		return fmt.Errorf("path leads out of the layer: %w", fs.ErrInvalid)
	}
	if name == "" {
		u.dirTimes["."] = header.ModTime
		return u.setMode(".", header)
	}
	if parent := path.Dir(name); parent != "." {
		if err := u.root.MkdirAll(parent, 0o755); err != nil {
			return err
		}
	}
	if base := path.Base(name); strings.HasPrefix(base, whiteoutPrefix) {
		return u.whiteout(path.Dir(name), base)
	}
	if err := u.makeRoom(name, header); err != nil {
		return err
	}
	if err := u.create(name, header, content); err != nil {
		return err
	}
	return u.finish(name, header)
}

// whiteout translates the image format's markers into overlayfs's own: a 0/0 character device hides a name, an
// attribute makes a directory opaque.
func (u *unpacker) whiteout(dir, base string) error {
	parent, err := u.root.Open(dir)
	if err != nil {
		return err
	}
	defer parent.Close()
	if base == opaqueMarker {
		return unix.Fsetxattr(int(parent.Fd()), opaqueAttribute, []byte("y"), 0)
	}
	hidden := strings.TrimPrefix(base, whiteoutPrefix)
	if hidden == "" || hidden == "." || hidden == ".." {
		return fmt.Errorf("whiteout of %q: %w", hidden, fs.ErrInvalid)
	}
	if err := u.root.RemoveAll(path.Join(dir, hidden)); err != nil {
		return err
	}
	return unix.Mknodat(int(parent.Fd()), hidden, unix.S_IFCHR, 0)
}

// makeRoom removes what an earlier entry of the same name left, unless both are directories.
func (u *unpacker) makeRoom(name string, header *tar.Header) error {
	info, err := u.root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.IsDir() && header.Typeflag == tar.TypeDir {
		return nil
	}
	return u.root.RemoveAll(name)
}

func (u *unpacker) create(name string, header *tar.Header, content io.Reader) error {
	switch header.Typeflag {
	case tar.TypeDir:
		err := u.root.Mkdir(name, 0o755)
		if errors.Is(err, fs.ErrExist) {
			return nil
		}
		return err
	case tar.TypeReg:
		return u.file(name, header, content)
	case tar.TypeSymlink:
		return u.root.Symlink(header.Linkname, name)
	case tar.TypeLink:
		return u.root.Link(entryName(header.Linkname), name)
	case tar.TypeChar, tar.TypeBlock, tar.TypeFifo:
		return u.node(name, header)
	}
	return nil // formats grow: an unknown entry type carries no file
}

func (u *unpacker) file(name string, header *tar.Header, content io.Reader) error {
	u.bytes += uint64(header.Size)
	if u.bytes > layerBytesMax {
		return errLayerTooLarge
	}
	file, err := u.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err := io.Copy(file, content); err != nil {
		return errors.Join(err, file.Close())
	}
	return file.Close()
}

func (u *unpacker) node(name string, header *tar.Header) error {
	parent, err := u.root.Open(path.Dir(name))
	if err != nil {
		return err
	}
	defer parent.Close()
	kinds := map[byte]uint32{tar.TypeChar: unix.S_IFCHR, tar.TypeBlock: unix.S_IFBLK, tar.TypeFifo: unix.S_IFIFO}
	device := unix.Mkdev(uint32(header.Devmajor), uint32(header.Devminor))
	return unix.Mknodat(int(parent.Fd()), path.Base(name), kinds[header.Typeflag]|0o600, int(device))
}

// finish sets owner, mode, attributes and time: owner first, because changing it clears set-user-id and capabilities.
func (u *unpacker) finish(name string, header *tar.Header) error {
	if header.Typeflag == tar.TypeLink {
		return nil // it is the other name's file
	}
	if err := u.root.Lchown(name, header.Uid, header.Gid); err != nil {
		return err
	}
	if header.Typeflag == tar.TypeSymlink {
		return nil
	}
	if err := u.setMode(name, header); err != nil {
		return err
	}
	if err := u.setAttributes(name, header); err != nil {
		return err
	}
	if header.Typeflag == tar.TypeDir {
		u.dirTimes[name] = header.ModTime
		return nil
	}
	return u.root.Chtimes(name, header.ModTime, header.ModTime)
}

func (u *unpacker) setMode(name string, header *tar.Header) error {
	return u.root.Chmod(name, header.FileInfo().Mode()&(fs.ModePerm|fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky))
}

func (u *unpacker) setAttributes(name string, header *tar.Header) error {
	if header.Typeflag != tar.TypeReg && header.Typeflag != tar.TypeDir {
		return nil
	}
	for key, value := range header.PAXRecords {
		attribute, ok := strings.CutPrefix(key, xattrRecord)
		// trusted.overlay.* in a layer would speak to our overlay in the image's name.
		if !ok || strings.HasPrefix(attribute, "trusted.") {
			continue
		}
		file, err := u.root.Open(name)
		if err != nil {
			return err
		}
		err = unix.Fsetxattr(int(file.Fd()), attribute, []byte(value), 0)
		file.Close()
		if err != nil && !errors.Is(err, unix.ENOTSUP) {
			return err
		}
	}
	return nil
}
