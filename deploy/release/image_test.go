package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// written makes an archive of a program that is a few bytes.
func written(t *testing.T) string {
	t.Helper()
	binary, archive := filepath.Join(t.TempDir(), "setpoint"), filepath.Join(t.TempDir(), "image.tar")
	if err := os.WriteFile(binary, []byte("a program"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := writeImage(binary, "arm64", "v1.2.3", archive); err != nil {
		t.Fatal(err)
	}
	return archive
}

// TestImage: the program runs by itself, on its platform, and what writes the data directory may be no root. Made twice it is the same.
func TestImage(t *testing.T) {
	archive := written(t)
	image, err := tarball.ImageFromPath(archive, nil)
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.Architecture != "arm64" || config.OS != "linux" || !cmp.Equal(config.Config.Entrypoint, []string{"/setpoint"}) {
		t.Errorf("%+v", config)
	}
	manifest, err := tarball.LoadManifest(func() (io.ReadCloser, error) { return os.Open(archive) })
	if err != nil || !cmp.Equal(manifest[0].RepoTags, []string{"setpoint:v1.2.3"}) {
		t.Errorf("%+v, %v", manifest, err)
	}
	layers, err := image.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatal(layers, err)
	}
	files, err := layers[0].Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"dtrwxrwxrwx 0 tmp/ ", "-rwxr-xr-x 0 setpoint a program", "drwxr-xr-x 0 var/ ", "drwxr-xr-x 0 var/lib/ ", "drwx------ 65532 var/lib/setpoint/ "}
	if diff := cmp.Diff(want, listed(t, files)); diff != "" {
		t.Error(diff)
	}
	if first, second := readFile(t, archive), readFile(t, written(t)); !bytes.Equal(first, second) {
		t.Error("two archives of one program differ")
	}
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// listed is each file of an archive: its mode, owner, name and text.
func listed(t *testing.T, archive io.Reader) (files []string) {
	t.Helper()
	for r := tar.NewReader(archive); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, header.FileInfo().Mode().String()+" "+strconv.Itoa(header.Uid)+" "+header.Name+" "+string(text))
	}
}
