package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded"
	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/images"
	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/imagesocket"
	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/registries"
	"github.com/setpoint-io/setpoint/internal/process"
)

// The images of a node, as `setpoint images` shows and asks for them.
type (
	ImageClient  = imagesocket.Client
	Image        = imagesocket.Image
	ImageList    = imagesocket.List
	PrunedImages = imagesocket.Pruned
	ImagePull    = images.Pulling
	RegistryAuth = images.Auth
)

// runtimeDir is the embedded runtime's folder in a data directory.
func runtimeDir(dataDir string) string { return filepath.Join(dataDir, "runtime") }

// serveImages serves `setpoint images` until ctx ends. A node that cannot does all else.
func serveImages(ctx context.Context, dataDir string, runtime *embedded.Runtime, logger *slog.Logger) {
	config := imagesocket.Config{Dir: runtimeDir(dataDir), Store: runtime.Images(), Use: runtime.ImagesInUse, Logger: logger}
	listener, err := imagesocket.Listen(config.Dir)
	if err == nil {
		err = imagesocket.Run(ctx, listener, config)
	}
	if err != nil {
		logger.Warn("'setpoint images' is not served", "err", err)
	}
}

var errRootsImages = errors.New("the images of a node are root's: run this command with sudo")

// OpenImages reaches the images of a data directory: by the agent that runs with it, or, while none does, by opening
// them here until close is called. Then an agent cannot start, and images are fetched as registriesPath says; an agent
// that runs has its own.
func OpenImages(
	ctx context.Context, dataDir, registriesPath string, logger *slog.Logger,
) (client *ImageClient, closeAll func(), err error) {
	if _, err := os.Stat(dataDir); err != nil {
		return nil, nil, err // nobody's images, and no directory is made
	}
	if os.Geteuid() != 0 {
		return nil, nil, errRootsImages // nor is anything made in it: 'setpoint reset' would find images that nobody has
	}
	places, err := openRegistries(registriesPath)
	if err != nil {
		return nil, nil, err
	}
	client = imagesocket.NewClient(runtimeDir(dataDir))
	unlock, err := process.Lock(dataDir, process.AgentRole)
	switch {
	case errors.Is(err, process.ErrInUse):
		if registriesPath != "" {
			logger.Warn("--registries is not used: the agent that runs with the data directory has its own", "dataDir", dataDir)
		}
		return client, client.Close, answers(ctx, client, dataDir)
	case err != nil:
		return nil, nil, err
	}
	served, err := openOffline(ctx, dataDir, places, logger)
	if err != nil {
		unlock()
		return nil, nil, err
	}
	return client, func() { client.Close(); served(); unlock() }, nil
}

// answers tells whether the process that has the lock serves images.
func answers(ctx context.Context, client *ImageClient, dataDir string) error {
	_, err := client.List(ctx)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("whatever runs with %s serves no images: it starts, is older, or has another container runtime (ask that one): %w",
			dataDir, err)
	}
	return err
}

// openOffline serves the store from this process; the caller has the lock.
func openOffline(ctx context.Context, dataDir string, places registries.Config, logger *slog.Logger) (closeAll func(), err error) {
	dir := runtimeDir(dataDir)
	store, err := images.Open(images.Config{Dir: filepath.Join(dir, "images"), Registries: places, Logger: logger})
	if err != nil {
		return nil, err
	}
	listener, err := imagesocket.Listen(dir)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var serving sync.WaitGroup
	serving.Go(func() {
		config := imagesocket.Config{Dir: dir, Store: store, Use: func() (images.Use, error) { return recordedUse(dir) }, Logger: logger}
		if err := imagesocket.Run(ctx, listener, config); err != nil {
			logger.Warn("images", "err", err)
		}
	})
	return func() { cancel(); serving.Wait() }, nil
}

// recordedUse reads what containers have that go on without their agent.
func recordedUse(dir string) (images.Use, error) {
	use := images.Use{Images: map[string]bool{}, Layers: map[string]bool{}}
	records, err := filepath.Glob(filepath.Join(dir, "containers", "*", "record.json"))
	if err != nil {
		return use, err
	}
	for _, path := range records {
		var record struct {
			ImageID string
			Layers  []string
			Volumes map[string][]string
		}
		data, err := os.ReadFile(path)
		if err == nil {
			err = json.Unmarshal(data, &record)
		}
		if err != nil {
			return use, fmt.Errorf("which images containers use: %s: %w", path, err)
		}
		use.Add(record.ImageID, record.Layers, record.Volumes)
	}
	return use, nil
}
