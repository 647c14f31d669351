package demoimage

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/images"
)

func TestImagesShareOneLinkedLayer(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "program")
	if err := os.WriteFile(program, []byte("#!"), 0o755); err != nil {
		t.Fatal(err)
	}
	store, err := images.Open(images.Config{Dir: filepath.Join(dir, "store"), Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	built, err := Build(program)
	if err != nil {
		t.Fatal(err)
	}
	layers, ids := map[string]bool{}, map[string]bool{}
	for _, local := range built {
		image, err := store.AddLocal(local)
		if err != nil {
			t.Fatal(err)
		}
		layers[image.Layers[0]], ids[image.ID] = true, true
	}
	if len(layers) != 1 || len(ids) != len(Versions()) {
		t.Fatalf("layers %v, images %v", layers, ids)
	}
	for layer := range layers {
		copied, err := os.Stat(filepath.Join(store.LayersDir(), layer, "setpoint"))
		original, originalErr := os.Stat(program)
		if err != nil || originalErr != nil || !os.SameFile(copied, original) {
			t.Errorf("the executable was copied: %v %v", err, originalErr)
		}
	}
	if image, err := store.Get(Repository + ":broken"); err != nil || image.Config.Entrypoint[3] != "broken" {
		t.Errorf("broken: %v %v", image, err)
	}
}

func TestMissingExecutable(t *testing.T) {
	if _, err := Build("/no/such"); err == nil {
		t.Error("built from nothing")
	}
}
