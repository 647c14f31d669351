package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// The users and groups of all images. Cases want other numbers to have no name.
const (
	passwd = "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/home:/bin/false\n"
	groups = "root:x:0:\nnogroup:x:65534:\n"
)

const websiteDir = "/usr/share/nginx/html"

// programs are what the images are made of.
type programs struct{ busybox, bash, client, agnhost, nnp, sampleAPIServer, etcd, module string }

// file is one entry of a layer: a folder, a link or content.
type file struct {
	path string
	// mode is the permission bits, setuid and the sticky bit as tar has them.
	mode    int64
	link    string
	content []byte
}

func folder(path string, mode int64) file { return file{path: path + "/", mode: mode} }

func text(path, content string) file { return file{path: path, mode: 0o644, content: []byte(content)} }

func (p programs) layers() (map[layer]v1.Layer, error) {
	made := map[layer]v1.Layer{}
	for which, make := range map[layer]func() ([]file, error){
		userland: p.userland, agnhost: p.agnhostFiles, nnp: p.nnpFiles, website: websiteFiles,
		kitten: p.kittenFiles, nautilus: func() ([]file, error) { return p.html("nautilus") },
		sampleAPIServer: func() ([]file, error) { return alone(p.sampleAPIServer, "sample-apiserver") },
		etcd:            func() ([]file, error) { return alone(p.etcd, "usr/local/bin/etcd") },
		coreutils:       coreutilsFiles,
	} {
		files, err := make()
		if err == nil {
			made[which], err = layerOf(files)
		}
		if err != nil {
			return nil, err
		}
	}
	return made, nil
}

func (p programs) userland() ([]file, error) {
	busybox, err := program(p.busybox, "bin/busybox")
	if err != nil {
		return nil, err
	}
	bash, err := program(p.bash, "bin/bash")
	if err != nil {
		return nil, err
	}
	client, err := program(p.client, "usr/bin/curl")
	if err != nil {
		return nil, err
	}
	names, err := exec.Command(p.busybox, "--list").Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.busybox, err)
	}
	files := []file{
		busybox, bash, {path: "usr/local/bin/sh", mode: 0o777, link: "/bin/bash"},
		folder("tmp", 0o1777), folder("var/tmp", 0o1777), folder("root", 0o700),
		folder("home", 0o755), folder("var/run", 0o755), folder("usr/local/bin", 0o755),
		text("etc/passwd", passwd), text("etc/group", groups),
		client,
	}
	for _, name := range []string{"nc", "dig", "nslookup", "getent", "printenv"} {
		files = append(files, file{path: "usr/bin/" + name, mode: 0o777, link: "curl"})
	}
	for _, name := range strings.Fields(string(names)) {
		if name != "busybox" {
			files = append(files, file{path: "bin/" + name, mode: 0o777, link: "busybox"})
		}
	}
	return files, nil
}

// coreutilsFiles have dd take a flag that busybox' lacks, and that is advice only.
func coreutilsFiles() ([]file, error) {
	const dd = `#!/bin/sh
for word; do
  shift
  [ "$word" = oflag=nocache ] || set -- "$@" "$word"
done
exec busybox dd "$@"
`
	return []file{
		{path: "bin/sh", mode: 0o777, link: "/bin/bash"}, // as for agnhost
		{path: "usr/local/bin/dd", mode: 0o755, content: []byte(dd)},
	}, nil
}

func (p programs) agnhostFiles() ([]file, error) {
	files := []file{
		folder("uploads", 0o755), {path: "agnhost-2", mode: 0o777, link: "agnhost"},
		{path: "bin/sh", mode: 0o777, link: "/bin/bash"}, // busybox' runs its own nc, whatever PATH says
		text("etc/passwd", passwd+"user-defined-in-image:x:1000:1000::/home:/bin/sh\n"),
		text("etc/group", groups+"user-defined-in-image:x:1000:\ngroup-defined-in-image:x:50000:user-defined-in-image\n"),
	}
	porter := filepath.Join(p.module, "test/images/agnhost/porter")
	for target, source := range map[string]string{"agnhost": p.agnhost, "localhost.crt": filepath.Join(porter, "localhost.crt"), "localhost.key": filepath.Join(porter, "localhost.key")} {
		f, err := program(source, target)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

// nnpFiles: the program runs as its owner, root, whoever calls it.
func (p programs) nnpFiles() ([]file, error) {
	f, err := program(p.nnp, "usr/local/bin/nnp")
	f.mode = 0o6755
	return []file{f}, err
}

func websiteFiles() ([]file, error) {
	return []file{text(websiteDir[1:]+"/index.html", "<html><body><h1>It works!</h1></body></html>\n")}, nil
}

// kittenFiles: upstream's image is made from Alpine's, and a case reads in the image's files which system that is.
func (p programs) kittenFiles() ([]file, error) {
	files, err := p.html("kitten")
	return append(files, text("etc/os-release", "NAME=\"Alpine Linux\"\nID=alpine\n")), err
}

func (p programs) html(name string) ([]file, error) {
	dir := filepath.Join(p.module, "test/images", name, "html")
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var files []file
	for _, entry := range entries {
		content, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return nil, err
		}
		files = append(files, text(entry.Name(), string(content)))
	}
	return files, nil
}

// alone is a layer of one program.
func alone(source, target string) ([]file, error) {
	f, err := program(source, target)
	return []file{f}, err
}

func program(source, target string) (file, error) {
	content, err := os.ReadFile(source)
	return file{path: target, mode: 0o755, content: content}, err
}

func layerOf(files []file) (v1.Layer, error) {
	archive, err := tarOf(files)
	if err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(archive)), nil })
}

// tarOf writes the files in order of their paths, each after its folders, and
// without times: the same files make the same layer.
func tarOf(files []file) ([]byte, error) {
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for _, f := range withFolders(files) {
		header := &tar.Header{Name: f.path, Mode: f.mode, Typeflag: tar.TypeReg, Size: int64(len(f.content))}
		switch {
		case f.link != "":
			header.Typeflag, header.Linkname = tar.TypeSymlink, f.link
		case strings.HasSuffix(f.path, "/"):
			header.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.content); err != nil {
			return nil, err
		}
	}
	return archive.Bytes(), w.Close()
}

// withFolders sorts the files and adds the folders above them.
func withFolders(files []file) []file {
	all := map[string]file{}
	for _, f := range files {
		for dir := path.Dir(strings.TrimSuffix(f.path, "/")); dir != "."; dir = path.Dir(dir) {
			if _, given := all[dir+"/"]; !given {
				all[dir+"/"] = folder(dir, 0o755)
			}
		}
		all[f.path] = f
	}
	sorted := make([]file, 0, len(all))
	for _, f := range all {
		sorted = append(sorted, f)
	}
	slices.SortFunc(sorted, func(a, b file) int { return cmp.Compare(a.path, b.path) })
	return sorted
}
