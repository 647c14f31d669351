package nodefaults

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	containers "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// workloadImage holds nothing but the program in workload/main.go.
const workloadImage = "workload.local/workload:v1"

func writeImage(t *testing.T, dir string) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "workload")
	goBuild(t, program, "./workload")
	content, err := os.ReadFile(program)
	check(t, err)
	var files bytes.Buffer
	archive := tar.NewWriter(&files)
	check(t, archive.WriteHeader(&tar.Header{Name: "workload", Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(content))}))
	_, err = archive.Write(content)
	check(t, err)
	check(t, archive.Close())
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(files.Bytes())), nil })
	check(t, err)
	image, err := mutate.AppendLayers(empty.Image, layer)
	check(t, err)
	config, err := image.ConfigFile()
	check(t, err)
	config.OS, config.Architecture = "linux", runtime.GOARCH
	config.Config = containers.Config{Entrypoint: []string{"/workload"}}
	image, err = mutate.ConfigFile(image, config)
	check(t, err)
	tag, err := name.NewTag(workloadImage)
	check(t, err)
	check(t, os.MkdirAll(dir, 0o755))
	check(t, tarball.WriteToFile(filepath.Join(dir, "workload.tar"), tag, image))
}
