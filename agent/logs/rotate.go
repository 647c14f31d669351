package logs

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	criapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

const (
	// DefaultSizeMaxBytes and DefaultFilesMax are upstream's.
	DefaultSizeMaxBytes = 10 << 20
	DefaultFilesMax     = 5
	// DefaultLookEvery is the pause between two looks, upstream's.
	DefaultLookEvery = 10 * time.Second
	// stampFormat sorts by age.
	stampFormat = "20060102-150405.000000000"
)

// Config of Rotate; Runtime is required.
type Config struct {
	Runtime criapi.RuntimeService
	// SizeMaxBytes is when a file is rotated.
	SizeMaxBytes int64
	// FilesMax counts the present file, too.
	FilesMax int
	// LookEvery is the pause between two looks.
	LookEvery time.Duration
	Logger    *slog.Logger
}

// Rotate looks at the logs of running containers until ctx ends.
func Rotate(ctx context.Context, cfg Config) {
	if cfg.SizeMaxBytes == 0 {
		cfg.SizeMaxBytes = DefaultSizeMaxBytes
	}
	if cfg.FilesMax == 0 {
		cfg.FilesMax = DefaultFilesMax
	}
	if cfg.LookEvery == 0 {
		cfg.LookEvery = DefaultLookEvery
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	t := time.NewTicker(cfg.LookEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		if err := cfg.rotateAll(ctx); err != nil && ctx.Err() == nil {
			cfg.Logger.Warn("cannot rotate container logs", "err", err)
		}
	}
}

func (c *Config) rotateAll(ctx context.Context) error {
	running := &runtimeapi.ContainerFilter{State: &runtimeapi.ContainerStateValue{State: runtimeapi.ContainerState_CONTAINER_RUNNING}}
	list, err := c.Runtime.ListContainers(ctx, running)
	if err != nil {
		return err
	}
	for _, item := range list {
		resp, err := c.Runtime.ContainerStatus(ctx, item.Id, false)
		if err != nil {
			continue // it ended meanwhile
		}
		if err := c.rotate(ctx, item.Id, resp.GetStatus().GetLogPath()); err != nil {
			return fmt.Errorf("container %s: %w", item.Id, err)
		}
	}
	return nil
}

// rotate renames the file and lets the runtime open a new one; if it cannot,
// the old name comes back.
func (c *Config) rotate(ctx context.Context, id, path string) error {
	info, err := os.Stat(path)
	if err != nil || !filepath.IsAbs(path) || info.Size() < c.SizeMaxBytes {
		return nil // nothing written yet, or not enough
	}
	old := path + "." + time.Now().UTC().Format(stampFormat)
	if err := os.Rename(path, old); err != nil {
		return err
	}
	if err := c.Runtime.ReopenContainerLog(ctx, id); err != nil {
		if back := os.Rename(old, path); back != nil {
			return fmt.Errorf("%w; and the file could not be renamed back: %w", err, back)
		}
		return err
	}
	return c.prune(path)
}

// prune removes the oldest rotated files.
func (c *Config) prune(path string) error {
	old, err := filepath.Glob(path + ".*")
	if err != nil {
		return err
	}
	slices.Sort(old)
	for len(old) > c.FilesMax-1 {
		if err := os.Remove(old[0]); err != nil {
			return err
		}
		old = old[1:]
	}
	return nil
}
