// Command images packs the program that the suite's backends run, under all names by which its manifests call it.
//
// No registry is asked: the program is built from the suite's own module.
package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"runtime"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"sigs.k8s.io/gateway-api/conformance"
)

// called is also CoreDNS, which is asked by the cases of UDPRoutes only. Those are not examined, but it has to run.
var called = regexp.MustCompile(`image: (\S+)`)

const inside = "echo-basic"

func main() {
	program := flag.String("echo", "", "the static program echo-basic")
	out := flag.String("out", "", "the archive to write")
	flag.Parse()
	if err := write(*program, *out); err != nil {
		fmt.Fprintln(os.Stderr, "images:", err)
		os.Exit(1)
	}
}

func write(program, out string) error {
	image, err := pack(program)
	if err != nil {
		return err
	}
	names, err := wanted()
	if err != nil {
		return err
	}
	images := map[name.Reference]v1.Image{}
	for _, n := range names {
		ref, err := name.NewTag(n)
		if err != nil {
			return err
		}
		images[ref] = image
	}
	part := out + ".part"
	if err := tarball.MultiRefWriteToFile(part, images); err != nil {
		return errors.Join(err, os.Remove(part))
	}
	return os.Rename(part, out)
}

// wanted are the names in all manifests.
func wanted() (names []string, err error) {
	err = fs.WalkDir(conformance.Manifests, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := conformance.Manifests.ReadFile(path)
		for _, match := range called.FindAllSubmatch(text, -1) {
			names = append(names, string(match[1]))
		}
		return err
	})
	return names, err
}

func pack(program string) (v1.Image, error) {
	content, err := os.ReadFile(program)
	if err != nil {
		return nil, err
	}
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	if err := w.WriteHeader(&tar.Header{Name: inside, Mode: 0o755, Size: int64(len(content))}); err != nil {
		return nil, err
	}
	if _, err := w.Write(content); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	made, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(layer.Bytes())), nil })
	if err != nil {
		return nil, err
	}
	built, err := mutate.AppendLayers(empty.Image, made)
	if err != nil {
		return nil, err
	}
	file, err := built.ConfigFile()
	if err != nil {
		return nil, err
	}
	file.OS, file.Architecture, file.Config = "linux", runtime.GOARCH, v1.Config{Entrypoint: []string{"/" + inside}}
	return mutate.ConfigFile(built, file)
}
