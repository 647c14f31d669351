package images

import (
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
	content, err := decompressed(archive)
	if err != nil {
		return nil, err
	}
	file, err := os.CreateTemp(s.LayersDir(), temporaryPrefix)
	if err != nil {
		return nil, err
	}
	defer os.Remove(file.Name())
	defer content.Close()
	n, err := io.Copy(file, io.LimitReader(content, archiveBytesMax+1))
	if err == nil && n > archiveBytesMax {
		err = errArchiveTooLarge
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, err
	}
	return s.LoadArchive(file.Name())
}
