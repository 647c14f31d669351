package collect

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/setpoint-io/setpoint/agent/base/events"
	"github.com/setpoint-io/setpoint/agent/base/wait"
	"github.com/setpoint-io/setpoint/agent/runtime/cri"
)

// every is the pause between two rounds, upstream's.
const every = 5 * time.Minute

// Reasons of events on the Node, upstream's.
const (
	reasonFailed   = "ImageGCFailed"
	reasonNoRoom   = "FreeDiskSpaceFailed"
	reasonCapacity = "InvalidDiskCapacity"
)

// Config of a Collector. All fields but Logger are required.
type Config struct {
	NodeName string
	Runtime  cri.Runtime
	Policy   Policy
	Events   events.Recorder
	// Disk measures the file system that holds path, in bytes.
	Disk   func(path string) (capacity, available int64, err error)
	Logger *slog.Logger
}

// Collector remembers when images were used. Use New.
type Collector struct {
	Config
	mu     sync.Mutex // held through a round
	began  time.Time
	images map[string]image // by id
}

// New returns a Collector that does nothing before Run or RemoveUnused.
func New(cfg Config) *Collector {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Collector{Config: cfg, began: time.Now(), images: map[string]image{}}
}

// Run removes images by the Policy until ctx ends; with a Policy that never does it returns at once.
func (c *Collector) Run(ctx context.Context) {
	if c.Policy.never() {
		return
	}
	failedBefore := false
	for {
		err := c.round(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			c.Logger.Warn("cannot collect images", "err", err)
		}
		if err != nil && failedBefore { // once may be because the runtime is not ready yet
			c.warn(reasonFailed, err.Error())
		}
		failedBefore = err != nil
		if !wait.For(ctx, every) {
			return
		}
	}
}

// RemoveUnused removes all images that nobody uses and that are older than the minimum age, whatever the disk says.
func (c *Collector) RemoveUnused(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	list, err := c.look(ctx, now)
	if err != nil {
		return err
	}
	return c.removeAll(ctx, c.Policy.forSpace(candidates(list), now))
}

// round looks at the images, then at the disk, and removes what has to go.
func (c *Collector) round(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	list, err := c.look(ctx, now)
	if err != nil {
		return err
	}
	may := candidates(list)
	if err := c.removeAll(ctx, c.Policy.tooOld(may, c.began, now)); err != nil {
		return fmt.Errorf("remove images unused for %v: %w", c.Policy.MaxAge, err)
	}
	d, err := c.disk(ctx)
	if err != nil {
		return err
	}
	return c.makeRoom(ctx, may, d, now)
}

func (c *Collector) removeAll(ctx context.Context, list []image) error {
	var errs error
	for _, i := range list {
		errs = errors.Join(errs, c.remove(ctx, i))
	}
	return errs
}

func (c *Collector) remove(ctx context.Context, i image) error {
	c.Logger.Info("removing an image that nobody uses", "image", i.id, "bytes", i.bytes)
	if err := c.Runtime.RemoveImage(ctx, &runtimeapi.ImageSpec{Image: i.id}); err != nil {
		return fmt.Errorf("image %s: %w", i.id, err)
	}
	delete(c.images, i.id)
	return nil
}

// makeRoom counts the sizes of what it removes; layers that images share are counted with each, as a kubelet does.
func (c *Collector) makeRoom(ctx context.Context, may []image, d disk, now time.Time) error {
	excess := c.Policy.excess(d)
	if excess == 0 {
		return nil
	}
	var freed int64
	var errs error
	for _, i := range c.Policy.forSpace(may, now) {
		if _, there := c.images[i.id]; !there { // it was too old
			continue
		}
		if err := c.remove(ctx, i); err != nil {
			errs = errors.Join(errs, err)
			continue
		}
		if freed += i.bytes; freed >= excess {
			break
		}
	}
	if errs != nil {
		return fmt.Errorf("wanted to free %d bytes, freed %d: %w", excess, freed, errs)
	}
	if freed < excess {
		err := &noRoomError{usedPercent: d.usedPercent(), capacity: d.capacity, freed: freed}
		c.warn(reasonNoRoom, err.Error())
		return err
	}
	return nil
}

// noRoomError: what fills the disk is not unused images. The message is upstream's.
type noRoomError struct {
	usedPercent     int
	capacity, freed int64
}

func (e *noRoomError) Error() string {
	return fmt.Sprintf("Insufficient free disk space on the node's image filesystem (%d%% of %s used). "+
		"Failed to free sufficient space by deleting unused images (freed %d bytes). "+
		"Investigate disk usage, as it could be used by active images, logs, volumes, or other data.",
		e.usedPercent, readable(e.capacity), e.freed)
}

// readable is a size in the largest binary unit up to TiB.
func readable(bytes int64) string {
	if bytes < 1024 {
		return fmt.Sprintf("%d B", bytes)
	}
	size, unit := float64(bytes)/1024, 0
	for units := "KMGT"; size >= 1024 && unit < len(units)-1; unit++ {
		size /= 1024
	}
	return fmt.Sprintf("%.1f %ciB", size, "KMGT"[unit])
}

var errCapacity = errors.New("invalid capacity 0 on image filesystem")

// disk is the file system on which the runtime keeps images.
func (c *Collector) disk(ctx context.Context) (disk, error) {
	info, err := c.Runtime.ImageFsInfo(ctx)
	if err != nil {
		return disk{}, err
	}
	if len(info.GetImageFilesystems()) == 0 {
		return disk{}, errors.New("the runtime does not say where it keeps images")
	}
	capacity, available, err := c.Disk(info.ImageFilesystems[0].GetFsId().GetMountpoint())
	if err != nil {
		return disk{}, err
	}
	if capacity == 0 {
		c.warn(reasonCapacity, errCapacity.Error())
		return disk{}, errCapacity
	}
	return disk{capacity: capacity, available: min(available, capacity)}, nil
}

func (c *Collector) warn(reason, message string) {
	node := &corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: c.NodeName, UID: types.UID(c.NodeName)}
	c.Events.Event(node, corev1.EventTypeWarning, reason, message)
}
