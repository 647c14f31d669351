package logs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	criapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/setpoint-io/setpoint/agent/base/wait"
)

const (
	// DefaultSizeMaxBytes and DefaultFilesMax are upstream's.
	DefaultSizeMaxBytes = 10 << 20
	DefaultFilesMax     = 5
	// DefaultLookEvery is the pause between two looks, upstream's.
	DefaultLookEvery = 10 * time.Second
	// quickLook is the pause between two looks at a log that filled a file within LookEvery.
	quickLook = time.Second
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
	// LookEvery is the pause between two looks at all logs.
	LookEvery time.Duration
	// Links are kept to the logs of running containers, and to those of others below Roots while they are there.
	Links  Links
	Roots  []string
	Logger *slog.Logger
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
	newRotator(cfg, time.Now().Add(-cfg.LookEvery)).run(ctx) // links may be missing
}

// rotator is one running Rotate.
type rotator struct {
	Config
	looked time.Time        // at all logs
	quick  map[string]quick // by container
}

// quick is a log that filled a file within LookEvery.
type quick struct {
	path   string
	filled time.Time
}

func newRotator(cfg Config, now time.Time) *rotator {
	return &rotator{Config: cfg, looked: now, quick: map[string]quick{}}
}

func (r *rotator) run(ctx context.Context) {
	for wait.For(ctx, r.pause(time.Now())) {
		if err := r.look(ctx, time.Now()); err != nil && ctx.Err() == nil {
			r.Logger.Warn("cannot look after container logs", "err", err)
		}
	}
}

// pause is how long until the next look.
func (r *rotator) pause(now time.Time) time.Duration {
	left := r.LookEvery - now.Sub(r.looked)
	if len(r.quick) > 0 {
		return min(left, quickLook)
	}
	return left
}

// look rotates those that grow fast, and all when it is time.
func (r *rotator) look(ctx context.Context, now time.Time) error {
	if now.Sub(r.looked) >= r.LookEvery {
		r.looked = now
		maps.DeleteFunc(r.quick, func(_ string, q quick) bool { return now.Sub(q.filled) >= r.LookEvery })
		return r.rotateAll(ctx, now)
	}
	logs := map[string]string{}
	for id, q := range r.quick {
		logs[id] = q.path
	}
	return r.rotateSome(ctx, logs, now)
}

func (r *rotator) rotateAll(ctx context.Context, now time.Time) error {
	running := &runtimeapi.ContainerFilter{State: &runtimeapi.ContainerStateValue{State: runtimeapi.ContainerState_CONTAINER_RUNNING}}
	list, err := r.Runtime.ListContainers(ctx, running)
	if err != nil {
		return err
	}
	all, links := map[string]string{}, error(nil)
	for _, item := range list {
		if resp, err := r.Runtime.ContainerStatus(ctx, item.Id, false); err == nil { // else it ended meanwhile
			all[item.Id] = resp.GetStatus().GetLogPath()
			links = errors.Join(links, r.Links.Add(resp.GetStatus()))
		}
	}
	return errors.Join(links, r.Links.Prune(r.Roots...), r.rotateSome(ctx, all, now))
}

// rotateSome looks at each, whatever became of the others.
func (r *rotator) rotateSome(ctx context.Context, logs map[string]string, now time.Time) error {
	var errs []error
	for id, path := range logs {
		full, err := r.rotate(ctx, id, path)
		if err != nil {
			errs = append(errs, fmt.Errorf("container %s: %w", id, err))
		}
		if full {
			r.quick[id] = quick{path, now}
		}
	}
	return errors.Join(errs...)
}

// rotate renames the file, if it is full, and lets the runtime open a new one; if it cannot, the old name comes back.
func (r *rotator) rotate(ctx context.Context, id, path string) (full bool, err error) {
	info, err := os.Stat(path)
	if err != nil || !filepath.IsAbs(path) || info.Size() < r.SizeMaxBytes {
		return false, nil // nothing written yet, or not enough
	}
	old := path + "." + time.Now().UTC().Format(stampFormat)
	if err := os.Rename(path, old); err != nil {
		return false, err
	}
	if err := r.Runtime.ReopenContainerLog(ctx, id); err != nil {
		if back := os.Rename(old, path); back != nil {
			return false, fmt.Errorf("%w; and the file could not be renamed back: %w", err, back)
		}
		return false, err
	}
	return true, r.prune(path)
}

// prune removes the oldest rotated files: those beyond FilesMax, and those beyond twice what as many full files take, but for the latest. A
// log that grows fast has files that are far larger than SizeMaxBytes.
func (r *rotator) prune(path string) error {
	old, err := filepath.Glob(path + ".*")
	if err != nil {
		return err
	}
	slices.Sort(old)
	slices.Reverse(old)
	left := 2 * int64(r.FilesMax-1) * r.SizeMaxBytes
	var errs []error
	for i, name := range old {
		if info, err := os.Stat(name); err == nil {
			left -= info.Size()
		}
		if i >= r.FilesMax-1 || i > 0 && left < 0 {
			errs = append(errs, os.Remove(name))
		}
	}
	return errors.Join(errs...)
}
