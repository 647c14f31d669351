package main

import (
	"archive/tar"
	"bytes"
	"io"
	"reflect"
	"strings"
	"testing"
)

func TestALayerHasItsFoldersFirst(t *testing.T) {
	archive, err := tarOf([]file{text("usr/share/a", "A"), folder("usr", 0o700), {path: "usr/b", mode: 0o6755}, {path: "bin/sh", mode: 0o777, link: "/bin/busybox"}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for r := tar.NewReader(bytes.NewReader(archive)); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, h.FileInfo().Mode().String()+" "+h.Name)
	}
	want := []string{"drwxr-xr-x bin/", "Lrwxrwxrwx bin/sh", "drwx------ usr/", "ugrwxr-xr-x usr/b", "drwxr-xr-x usr/share/", "-rw-r--r-- usr/share/a"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestNoImageIsNamedTwiceOrLacksATag(t *testing.T) {
	seen := map[string]bool{}
	for _, image := range wanted() {
		if seen[image.name] || !strings.HasPrefix(image.name, "registry.k8s.io/") || !strings.Contains(image.name, ":") {
			t.Errorf("%s is named twice or not as upstream's images are", image.name)
		}
		seen[image.name] = true
	}
}
