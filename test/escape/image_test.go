package escape

import (
	"archive/tar"
	"bytes"
	"errors"
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

// attackerImage is what pages name in their pods.
const attackerImage = "attacker:v1"

// accounts is the image's /etc/passwd: hostile images have such lines.
const accounts = "root:x:0:0:root:/:\n1000:x:0:0:root by the name of a number:/:\n"

// linksImage has links in places where a runtime looks for directories, and declares a volume outside of itself.
const linksImage = "links:v1"

// imageLinks are those of linksImage.
var imageLinks = map[string]string{"proc": "/tmp", "outside": "/../../../../etc"}

// writeImages builds the attacker and packs it into archives in dir.
func writeImages(t *testing.T, dir string) {
	t.Helper()
	program := os.Getenv(attackerVariable)
	if program == "" {
		program = filepath.Join(t.TempDir(), "attacker")
		goBuild(t, program, "./attacker")
	}
	content, err := os.ReadFile(program)
	check(t, err)
	check(t, os.MkdirAll(dir, 0o755))
	writeImage(t, filepath.Join(dir, "attacker.tar"), attackerImage, content, nil)
	writeImage(t, filepath.Join(dir, "links.tar"), linksImage, content, imageLinks)
}

func writeImage(t *testing.T, archive, reference string, program []byte, links map[string]string) {
	t.Helper()
	files, err := imageFiles(program, links)
	check(t, err)
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(files)), nil })
	check(t, err)
	image, err := mutate.AppendLayers(empty.Image, layer)
	check(t, err)
	config, err := image.ConfigFile()
	check(t, err)
	config.OS, config.Architecture = "linux", runtime.GOARCH
	config.Config = containers.Config{Entrypoint: []string{"/attacker"}, Volumes: map[string]struct{}{"/outside": {}, "/../../../etc": {}}}
	image, err = mutate.ConfigFile(image, config)
	check(t, err)
	tag, err := name.NewTag(reference)
	check(t, err)
	check(t, tarball.WriteToFile(archive, tag, image))
}

func imageFiles(program []byte, links map[string]string) ([]byte, error) {
	var out bytes.Buffer
	archive := tar.NewWriter(&out)
	failed := archive.WriteHeader(&tar.Header{Name: "tmp/", Typeflag: tar.TypeDir, Mode: 0o1777})
	for _, file := range []struct {
		name    string
		mode    int64
		content []byte
	}{{"attacker", 0o755, program}, {"etc/passwd", 0o644, []byte(accounts)}} {
		failed = errors.Join(failed, archive.WriteHeader(&tar.Header{Name: file.name, Mode: file.mode, Size: int64(len(file.content))}))
		_, err := archive.Write(file.content)
		failed = errors.Join(failed, err)
	}
	for link, to := range links {
		failed = errors.Join(failed, archive.WriteHeader(&tar.Header{Name: link, Typeflag: tar.TypeSymlink, Linkname: to}))
	}
	return out.Bytes(), errors.Join(failed, archive.Close())
}
