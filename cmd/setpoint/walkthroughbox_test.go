package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/google/go-containerregistry/pkg/name"
	containers "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/rogpeppe/go-internal/testscript"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// ownNetwork gives what the script starts from here on a network namespace of its own,
// so that its pods meet nobody else's. The script's thread keeps it, and ends with it.
func ownNetwork(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: own-network")
	}
	runtime.LockOSThread()
	ts.Check(unix.Unshare(unix.CLONE_NEWNET))
	loopback, err := netlink.LinkByName("lo")
	ts.Check(err)
	ts.Check(netlink.LinkSetUp(loopback))
}

// boxImage writes an archive of an image with the little that kubectl expects inside a
// container, under a name that people have from a registry.
func boxImage(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: box-image ARCHIVE NAME")
	}
	box := ts.MkAbs("box")
	source := filepath.Join("..", "..", "test", "clients", "box")
	build := exec.Command("go", "build", "-o", box, filepath.Join(source, "main.go"), filepath.Join(source, "ask.go"), filepath.Join(source, "lookup.go"))
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		ts.Fatalf("box-image: %v\n%s", err, out)
	}
	content, err := os.ReadFile(box)
	ts.Check(err)
	files, err := boxFiles(content)
	ts.Check(err)
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(files)), nil })
	ts.Check(err)
	image, err := mutate.AppendLayers(empty.Image, layer)
	ts.Check(err)
	image, err = mutate.ConfigFile(image, &containers.ConfigFile{OS: "linux", Architecture: runtime.GOARCH,
		RootFS: containers.RootFS{Type: "layers", DiffIDs: mustDiffIDs(ts, image)},
		Config: containers.Config{Env: []string{"PATH=/bin"}, Cmd: []string{"/bin/pause"}}})
	ts.Check(err)
	tag, err := name.NewTag(args[1])
	ts.Check(err)
	archive := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(filepath.Dir(archive), 0o755))
	ts.Check(tarball.WriteToFile(archive, tag, image))
}

func mustDiffIDs(ts *testscript.TestScript, image containers.Image) []containers.Hash {
	config, err := image.ConfigFile()
	ts.Check(err)
	return config.RootFS.DiffIDs
}

// boxFiles is the layer: the box and its names.
func boxFiles(box []byte) ([]byte, error) {
	var out bytes.Buffer
	archive := tar.NewWriter(&out)
	failed := archive.WriteHeader(&tar.Header{Name: "tmp/", Typeflag: tar.TypeDir, Mode: 0o1777})
	failed = errors.Join(failed, archive.WriteHeader(&tar.Header{Name: "bin/box", Mode: 0o755, Size: int64(len(box))}))
	_, err := archive.Write(box)
	failed = errors.Join(failed, err)
	for _, n := range []string{"ask", "burn", "cat", "echo", "exit", "knock", "lookup", "ls", "owners", "pause", "tar", "test"} {
		failed = errors.Join(failed, archive.WriteHeader(&tar.Header{Name: "bin/" + n, Typeflag: tar.TypeSymlink, Linkname: "box"}))
	}
	return out.Bytes(), errors.Join(failed, archive.Close())
}
