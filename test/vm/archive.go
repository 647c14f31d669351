package vm

import (
	"bytes"
	"fmt"
	"io"
)

// A File is one entry of an initramfs. Mode holds the type as stat(2) has it: 0o040755 is a folder, 0o100755 a program.
type File struct {
	Name string // without a leading slash; its folder comes before it
	Mode uint32
	Data []byte
}

// archiveEnd is the name by which the kernel knows that an archive ends.
const archiveEnd = "TRAILER!!!"

// WriteArchive writes an initramfs: a cpio archive of the format "newc", as the kernel's
// Documentation/driver-api/early-userspace/buffer-format.rst has it. Everything belongs to root.
func WriteArchive(w io.Writer, files []File) error {
	for i, file := range files {
		if err := writeEntry(w, i+1, file); err != nil {
			return fmt.Errorf("%s: %w", file.Name, err)
		}
	}
	return writeEntry(w, 0, File{Name: archiveEnd})
}

func writeEntry(w io.Writer, inode int, file File) error {
	const owner, links, changed, device = 0, 1, 0, 0
	var entry bytes.Buffer
	entry.WriteString("070701")
	for _, number := range []int{inode, int(file.Mode), owner, owner, links, changed, len(file.Data),
		device, device, device, device, len(file.Name) + 1, 0} {
		fmt.Fprintf(&entry, "%08x", number)
	}
	entry.WriteString(file.Name + "\x00")
	pad(&entry)
	entry.Write(file.Data)
	pad(&entry)
	_, err := w.Write(entry.Bytes())
	return err
}

// pad fills up to a multiple of four: names and contents begin there.
func pad(entry *bytes.Buffer) {
	for entry.Len()%4 != 0 {
		entry.WriteByte(0)
	}
}
