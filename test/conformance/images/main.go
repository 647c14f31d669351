package main

import (
	"errors"
	"flag"
	"fmt"
	"os"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

func main() {
	var p programs
	flag.StringVar(&p.busybox, "busybox", "", "a static busybox")
	flag.StringVar(&p.bash, "bash", "", "a static bash")
	flag.StringVar(&p.client, "client", "", "curl, nc, dig, nslookup, getent and printenv in one: ./client")
	flag.StringVar(&p.agnhost, "agnhost", "", "upstream's agnhost")
	flag.StringVar(&p.nnp, "nnp", "", "upstream's nonewprivs")
	flag.StringVar(&p.sampleAPIServer, "sample-apiserver", "", "upstream's sample-apiserver")
	flag.StringVar(&p.etcd, "etcd", "", "an etcd server")
	flag.StringVar(&p.module, "module", "", "the folder of the module k8s.io/kubernetes")
	archive := flag.String("out", "", "the archive to write")
	flag.Parse()
	if err := write(*archive, p); err != nil {
		fmt.Fprintln(os.Stderr, "images:", err)
		os.Exit(1)
	}
}

// write writes the archive whole, or not at all.
func write(archive string, p programs) error {
	images, err := pack(p)
	if err != nil {
		return err
	}
	part := archive + ".part"
	if err := tarball.MultiRefWriteToFile(part, images); err != nil {
		return errors.Join(err, os.Remove(part))
	}
	return os.Rename(part, archive)
}

// pack makes all images; they share their layers.
func pack(p programs) (map[name.Reference]v1.Image, error) {
	layers, err := p.layers()
	if err != nil {
		return nil, err
	}
	images := map[name.Reference]v1.Image{}
	for _, want := range wanted() {
		ref, err := name.NewTag(want.name)
		if err != nil {
			return nil, err
		}
		if images[ref], err = assemble(want, layers); err != nil {
			return nil, fmt.Errorf("%s: %w", want.name, err)
		}
	}
	return images, nil
}

func assemble(want image, layers map[layer]v1.Layer) (v1.Image, error) {
	content := []v1.Layer{layers[userland]}
	for _, l := range want.layers {
		content = append(content, layers[l])
	}
	built, err := mutate.AppendLayers(empty.Image, content...)
	if err != nil {
		return nil, err
	}
	file, err := built.ConfigFile()
	if err != nil {
		return nil, err
	}
	file.OS, file.Architecture, file.Config = "linux", architecture, want.config
	file.Config.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	return mutate.ConfigFile(built, file)
}
