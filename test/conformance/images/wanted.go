package main

import (
	"runtime"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	imageutils "k8s.io/kubernetes/test/utils/image"
)

const architecture = runtime.GOARCH

// layer is a part that images share.
type layer int

const (
	// userland is busybox with its names, and what a root file system needs.
	userland layer = iota
	agnhost
	nnp
	website
	kitten
	nautilus
	sampleAPIServer
	etcd
	coreutils
)

// image is one that cases run.
type image struct {
	name   string
	layers []layer
	config v1.Config
}

// wanted lists the images, all with userland below.
func wanted() []image {
	shell := v1.Config{Cmd: []string{"sh"}}
	tester := func(command ...string) v1.Config {
		return v1.Config{Entrypoint: []string{"/agnhost"}, Cmd: command, WorkingDir: "/"}
	}
	server := v1.Config{Cmd: []string{"httpd", "-f", "-p", "80", "-h", websiteDir}}
	return []image{
		{named(imageutils.BusyBox), nil, shell},
		{"registry.k8s.io/e2e-test-images/busybox:1.36.1-1", nil, shell}, // named in manifests, not in the list
		{named(imageutils.Agnhost), []layer{agnhost}, tester("pause")},
		{named(imageutils.AgnhostPrev), []layer{agnhost}, tester("pause")},
		{named(imageutils.GlibcDnsTesting), []layer{coreutils}, shell},
		{named(imageutils.Pause), []layer{agnhost}, v1.Config{Entrypoint: []string{"/agnhost", "pause"}}},
		{named(imageutils.Nginx), []layer{website}, server},
		{named(imageutils.NginxNew), []layer{website}, server},
		{named(imageutils.Kitten), []layer{agnhost, kitten}, tester("test-webserver")},
		{named(imageutils.Nautilus), []layer{agnhost, nautilus}, tester("test-webserver")},
		{named(imageutils.NonRoot), nil, v1.Config{Cmd: []string{"sh"}, User: "1234"}},
		{named(imageutils.Nonewprivs), []layer{nnp}, v1.Config{Cmd: []string{"nnp"}}},
		{named(imageutils.APIServer), []layer{sampleAPIServer}, v1.Config{Entrypoint: []string{"/sample-apiserver"}}},
		{named(imageutils.Etcd), []layer{etcd}, v1.Config{Cmd: []string{"/usr/local/bin/etcd"}}},
	}
}

func named(id imageutils.ImageID) string { return imageutils.GetE2EImage(id) }
