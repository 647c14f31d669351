package main

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

const (
	upstream = "registry.k8s.io/"
	e2e      = upstream + "e2e-test-images/"
	staging  = "gcr.io/k8s-staging-cri-tools/"
	searched = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
)

// image is one that cases pull. mark makes its content differ from that of others; with adds a program.
type image struct {
	names   []string
	user    string
	mark    string
	command []string
	with    string
}

// programs are the files of the programs that images add, by their paths in the image.
type programs map[string]string

const (
	nginx = "bin/nginx"
	nnp   = "bin/nnp"
)

// modes are those of the programs: nnp runs as its owner, root.
var modes = map[string]int64{nginx: 0o755, nnp: 0o4755}

// wanted are the images of critest v1.36.0. That of the case with a digest cannot be made: its digest is upstream's.
func wanted() []image {
	shell := []string{"sh"}
	images := []image{
		{names: []string{e2e + "busybox:1.29-2"}, command: shell},
		{names: []string{upstream + "pause:3.9", "k8s.gcr.io/pause:3.9"}, command: []string{"sleep", "inf"}, mark: "pause"},
		{names: []string{e2e + "nginx:1.14-2"}, command: []string{"/bin/nginx", "80"}, with: nginx},
		{names: []string{staging + "hostnet-nginx-" + runtime.GOARCH + ":latest"}, command: []string{"/bin/nginx", "12003"}, with: nginx},
		{names: []string{e2e + "httpd:2.4.39-4"}, command: []string{"/bin/nginx", "80"}, with: nginx, mark: "httpd"},
		{names: []string{e2e + "nonewprivs:1.3"}, command: []string{"/bin/nnp"}, with: nnp},
		{names: []string{staging + "test-image-latest:latest"}, command: shell, mark: "latest"},
		{names: []string{staging + "test-image-tag:test"}, command: shell, mark: "test"},
		{names: []string{staging + "test-image-tag:all"}, command: shell, mark: "all"},
		{names: tags("test-image-tags:", 3), command: shell, mark: "tags"},
		{names: []string{staging + "test-image-user-uid:latest"}, command: shell, user: "1002"},
		{names: []string{staging + "test-image-user-username:latest"}, command: shell, user: "www-data"},
		{names: []string{staging + "test-image-user-uid-group:latest"}, command: shell, user: "1003:users"},
		{names: []string{staging + "test-image-user-username-group:latest"}, command: shell, user: "www-data:100"},
		{names: []string{staging + "test-image-predefined-group:latest"}, command: shell, user: "1000"},
	}
	for i := range 3 {
		number := strconv.Itoa(i + 1)
		images = append(images, image{names: []string{staging + "test-image-" + number + ":latest"}, command: shell, mark: number})
	}
	return images
}

func tags(prefix string, n int) (names []string) {
	for i := range n {
		names = append(names, staging+prefix+strconv.Itoa(i+1))
	}
	return names
}

// push makes the images and gives them to the registry.
func push(busybox string, from programs) error {
	base, err := userland(busybox)
	if err != nil {
		return err
	}
	for _, want := range wanted() {
		made, err := assemble(want, base, from)
		if err != nil {
			return err
		}
		for _, text := range want.names {
			ref, err := name.ParseReference(text)
			if err == nil {
				err = remote.Write(ref, made, remote.WithTransport(toLoopback()))
			}
			if err != nil {
				return fmt.Errorf("%s: %w", text, err)
			}
		}
	}
	return nil
}

func assemble(want image, base v1.Layer, from programs) (v1.Image, error) {
	added, err := layerOf(func(w *tar.Writer) error { return want.files(w, from) })
	if err != nil {
		return nil, err
	}
	built, err := mutate.AppendLayers(empty.Image, base, added)
	if err != nil {
		return nil, err
	}
	file, err := built.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture = "linux", runtime.GOARCH
	file.Config = v1.Config{Env: []string{searched}, Cmd: want.command, User: want.user, Labels: map[string]string{"of": want.names[0]}}
	return mutate.ConfigFile(built, file)
}

func (i image) files(w *tar.Writer, from programs) error {
	if i.mark != "" {
		if err := regular(w, i.mark, []byte(i.mark), 0o644); err != nil {
			return err
		}
	}
	if i.with == "" {
		return nil
	}
	content, err := os.ReadFile(from[i.with])
	if err != nil {
		return err
	}
	return regular(w, i.with, content, modes[i.with])
}

// scripts are what Debian's busybox lacks.
var scripts = map[string]string{
	"bin/ipcs":  "#!/bin/sh\nexec cat /proc/sysvipc/shm\n",
	"bin/pgrep": "#!/bin/sh\nfor pid in $(pidof \"$1\"); do echo \"$pid\"; done\n",
}

const (
	users = "root:x:0:0:root:/root:/bin/sh\nwww-data:x:33:33::/var/www:/bin/false\n" +
		"default-user:x:1000:1000::/home:/bin/sh\nnobody:x:65534:65534:nobody:/home:/bin/false\n"
	groups = "root:x:0:\nwww-data:x:33:\nusers:x:100:\ndefault-user:x:1000:\ngroup-defined-in-image:x:50000:default-user\nnogroup:x:65534:\n"
)

func userland(busybox string) (v1.Layer, error) {
	program, err := os.ReadFile(busybox)
	if err != nil {
		return nil, err
	}
	names, err := exec.Command(busybox, "--list").Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", busybox, err)
	}
	return layerOf(func(w *tar.Writer) error {
		for path, mode := range map[string]int64{"bin/": 0o755, "etc/": 0o755, "home/": 0o755, "root/": 0o700, "tmp/": 0o1777, "var/": 0o755, "var/run/": 0o755} {
			if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: path, Mode: mode}); err != nil {
				return err
			}
		}
		if err := regular(w, "bin/busybox", program, 0o755); err != nil {
			return err
		}
		// Hard links, as in upstream's image: a case masks one name and uses the others.
		for _, applet := range strings.Fields(string(names)) {
			if applet == "busybox" {
				continue
			}
			if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeLink, Name: "bin/" + applet, Linkname: "bin/busybox", Mode: 0o755}); err != nil {
				return err
			}
		}
		for path, text := range scripts {
			if err := regular(w, path, []byte(text), 0o755); err != nil {
				return err
			}
		}
		for path, text := range map[string]string{"etc/passwd": users, "etc/group": groups} {
			if err := regular(w, path, []byte(text), 0o644); err != nil {
				return err
			}
		}
		return nil
	})
}

func regular(w *tar.Writer, path string, content []byte, mode int64) error {
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: path, Size: int64(len(content)), Mode: mode}); err != nil {
		return err
	}
	_, err := w.Write(content)
	return err
}

func layerOf(write func(*tar.Writer) error) (v1.Layer, error) {
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	if err := write(w); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(archive.Bytes())), nil })
}
