package main

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

const (
	imageName = "setpoint"
	dataDir   = "var/lib/setpoint"
	// serverUser may write to the data directory's volume, so that servers and clients need no root: docker run --user 65532. Agents do.
	serverUser = 65532
)

// writeImage writes an archive for `docker load` and `setpoint images import`: the binary, and an empty data directory.
func writeImage(binary, architecture, version, archive string) error {
	content, err := os.ReadFile(binary)
	if err != nil {
		return err
	}
	image, err := newImage(content, architecture, version)
	if err != nil {
		return err
	}
	tag, err := name.NewTag(imageName+":"+version, name.WithDefaultRegistry(""))
	if err != nil {
		return err
	}
	return tarball.WriteToFile(archive, tag, image)
}

func newImage(binary []byte, architecture, version string) (v1.Image, error) {
	files, err := layerFiles(binary)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(files)), nil })
	if err != nil {
		return nil, err
	}
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = "linux", architecture, v1.Time{Time: time.Unix(0, 0).UTC()}
	config.Config = v1.Config{
		Entrypoint: []string{"/setpoint"}, Env: []string{"PATH=/", "SETPOINT_DATA_DIR=/" + dataDir},
		Volumes: map[string]struct{}{"/" + dataDir: {}},
		Labels:  map[string]string{"org.opencontainers.image.title": imageName, "org.opencontainers.image.version": version},
	}
	return mutate.ConfigFile(image, config)
}

// layerFiles are the files of the image as a tar archive, without times.
func layerFiles(binary []byte) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, header := range []tar.Header{
		{Name: "tmp/", Typeflag: tar.TypeDir, Mode: 0o1777},
		{Name: "setpoint", Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(binary))},
		{Name: "var/", Typeflag: tar.TypeDir, Mode: 0o755},
		{Name: "var/lib/", Typeflag: tar.TypeDir, Mode: 0o755},
		{Name: dataDir + "/", Typeflag: tar.TypeDir, Mode: 0o700, Uid: serverUser, Gid: serverUser},
	} {
		header.ModTime = time.Unix(0, 0)
		if err := w.WriteHeader(&header); err != nil {
			return nil, err
		}
		if header.Typeflag != tar.TypeReg {
			continue
		}
		if _, err := w.Write(binary); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), w.Close()
}
