package images

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// xattrBytesMax is the kernel's limit for the names of a file's attributes, and for one value.
const xattrBytesMax = 64 << 10

// packer is the opposite of unpacker: a layer's directory becomes its tar.
type packer struct {
	ctx  context.Context
	root *os.Root
	out  *tar.Writer
	// linked are the first names of files that have several.
	linked map[uint64]string
}

// pack writes the layer in dir as a tar, in the order of names.
func pack(ctx context.Context, dir string, w io.Writer) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	p := &packer{ctx: ctx, root: root, out: tar.NewWriter(w), linked: map[uint64]string{}}
	err = fs.WalkDir(root.FS(), ".", func(name string, _ fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		return p.entry(name)
	})
	if err != nil {
		return err
	}
	return p.out.Close()
}

func (p *packer) entry(name string) error {
	info, err := p.root.Lstat(name)
	if err != nil {
		return err
	}
	stat := info.Sys().(*syscall.Stat_t)
	switch {
	case info.Mode()&fs.ModeSocket != 0:
		return nil // no archive has them
	case info.Mode()&fs.ModeCharDevice != 0 && stat.Rdev == 0:
		return p.marker(path.Join(path.Dir(name), whiteoutPrefix+path.Base(name)))
	}
	link := ""
	if info.Mode()&fs.ModeSymlink != 0 {
		if link, err = p.root.Readlink(name); err != nil {
			return err
		}
	}
	header, err := tar.FileInfoHeader(info, link)
	if err != nil {
		return err
	}
	header.Name, header.Uname, header.Gname = name, "", "" // names of users are this machine's
	if info.IsDir() {
		return p.folder(header)
	}
	if first := p.linked[stat.Ino]; first != "" {
		header.Typeflag, header.Linkname, header.Size = tar.TypeLink, first, 0
		return p.out.WriteHeader(header)
	}
	if stat.Nlink > 1 {
		p.linked[stat.Ino] = name
	}
	if !info.Mode().IsRegular() {
		return p.out.WriteHeader(header)
	}
	return p.file(header)
}

// marker is an empty file that hides what lower layers have.
func (p *packer) marker(name string) error {
	return p.out.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644})
}

func (p *packer) folder(header *tar.Header) error {
	file, attributes, err := p.described(header)
	if err != nil {
		return err
	}
	defer file.Close()
	name := header.Name
	header.Name += "/"
	if err := p.out.WriteHeader(header); err != nil || attributes[opaqueAttribute] != "y" {
		return err
	}
	return p.marker(path.Join(name, opaqueMarker))
}

func (p *packer) file(header *tar.Header) error {
	file, _, err := p.described(header)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := p.out.WriteHeader(header); err != nil {
		return err
	}
	_, err = io.Copy(p.out, file)
	return err
}

// described opens what the header names, and adds its attributes to the header. The caller closes the file.
func (p *packer) described(header *tar.Header) (*os.File, map[string]string, error) {
	file, err := p.root.Open(header.Name)
	if err != nil {
		return nil, nil, err
	}
	attributes, err := attributesOf(int(file.Fd()))
	if err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	header.PAXRecords = records(attributes)
	return file, attributes, nil
}

// records are the attributes that unpacking takes from a layer.
func records(attributes map[string]string) map[string]string {
	kept := map[string]string{}
	for name, value := range attributes {
		if !strings.HasPrefix(name, "trusted.") {
			kept[xattrRecord+name] = value
		}
	}
	return kept
}

func attributesOf(fd int) (map[string]string, error) {
	buffer := make([]byte, xattrBytesMax)
	n, err := unix.Flistxattr(fd, buffer)
	if errors.Is(err, unix.ENOTSUP) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	for _, name := range strings.Split(strings.TrimSuffix(string(buffer[:n]), "\x00"), "\x00") {
		if name == "" {
			continue
		}
		value := make([]byte, xattrBytesMax)
		size, err := unix.Fgetxattr(fd, name, value)
		if err != nil {
			return nil, err
		}
		found[name] = string(value[:size])
	}
	return found, nil
}
