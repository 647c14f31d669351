package images

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
)

// errArchiveTooLarge says that an archive exceeds archiveBytesMax.
var errArchiveTooLarge = fmt.Errorf("archive of more than %d GiB", archiveBytesMax>>30)

// Import loads all images of an archive that comes as a stream: docker-archive or OCI layout, plain or gzip. They are
// kept like those of the archives folder.
func (s *Store) Import(archive io.Reader) ([]Image, error) {
	plain, err := decompressed(archive)
	if err != nil {
		return nil, err
	}
	file, err := os.CreateTemp(s.LayersDir(), temporaryPrefix)
	if err != nil {
		return nil, err
	}
	defer os.Remove(file.Name())
	n, err := io.Copy(file, io.LimitReader(plain, archiveBytesMax+1))
	if err == nil && n > archiveBytesMax {
		err = errArchiveTooLarge
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, err
	}
	return s.LoadArchive(file.Name())
}

func decompressed(archive io.Reader) (io.Reader, error) {
	buffered := bufio.NewReader(archive)
	// What is shorter than the mark is no archive: reading it will tell.
	if head, _ := buffered.Peek(len(gzipMark)); bytes.Equal(head, gzipMark) {
		return gzip.NewReader(buffered)
	}
	return buffered, nil
}

var gzipMark = []byte{0x1f, 0x8b}
