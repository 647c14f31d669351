package clients

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
)

// boxNames are what the box goes by; test is what kubectl cp calls.
var boxNames = []string{"cat", "echo", "exit", "ls", "owners", "pause", "tar", "test"}

// writeBoxImage writes an archive, as of docker save, of an image with nothing but the
// box in /bin.
func writeBoxImage(path, name string) error {
	box, err := os.ReadFile(program("box"))
	if err != nil {
		return err
	}
	entries := []*tar.Header{
		{Name: "tmp/", Typeflag: tar.TypeDir, Mode: 0o1777},
		{Name: "bin/box", Mode: 0o755},
	}
	for _, n := range boxNames {
		entries = append(entries, &tar.Header{Name: "bin/" + n, Typeflag: tar.TypeSymlink, Linkname: "box"})
	}
	layer, err := archive(entries, map[string][]byte{"bin/box": box})
	if err != nil {
		return err
	}
	config, err := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH, "os": "linux",
		"config": map[string]any{"Env": []string{"PATH=/bin"}, "Cmd": []string{"/bin/pause"}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{fmt.Sprintf("sha256:%x", sha256.Sum256(layer))}},
	})
	if err != nil {
		return err
	}
	manifest, err := json.Marshal([]any{map[string]any{"Config": "config.json", "RepoTags": []string{name}, "Layers": []string{"layer.tar"}}})
	if err != nil {
		return err
	}
	image, err := archive([]*tar.Header{{Name: "manifest.json", Mode: 0o644}, {Name: "config.json", Mode: 0o644}, {Name: "layer.tar", Mode: 0o644}},
		map[string][]byte{"manifest.json": manifest, "config.json": config, "layer.tar": layer})
	if err != nil {
		return err
	}
	return os.WriteFile(path, image, 0o644)
}

func archive(entries []*tar.Header, files map[string][]byte) ([]byte, error) {
	var out bytes.Buffer
	writer := tar.NewWriter(&out)
	for _, header := range entries {
		header.Size = int64(len(files[header.Name]))
		if err := writer.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := writer.Write(files[header.Name]); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), errors.Join(writer.Close())
}
