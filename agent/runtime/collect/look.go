package collect

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// look brings c.images up to date and returns them.
func (c *Collector) look(ctx context.Context, now time.Time) ([]image, error) {
	// Images first: one that comes meanwhile is not in the list, and a container that comes meanwhile is seen.
	list, err := c.Runtime.ListImages(ctx, nil)
	if err != nil {
		return nil, err
	}
	names, err := c.namesInUse(ctx)
	if err != nil {
		return nil, err
	}
	known := c.images
	c.images = map[string]image{}
	var out []image
	for _, found := range list {
		i := known[found.Id]
		if i.first.IsZero() {
			i.first = now
		}
		i.id, i.bytes, i.pinned, i.inUse = found.Id, int64(found.Size), found.Pinned, names.has(found)
		if i.inUse {
			i.used = now
		}
		c.images[i.id] = i
		out = append(out, i)
	}
	return out, nil
}

// names of images: ids, tags or digests.
type names map[string]bool

func (n names) has(i *runtimeapi.Image) bool {
	for _, list := range [][]string{{i.Id}, i.RepoTags, i.RepoDigests} {
		for _, name := range list {
			if n[name] {
				return true
			}
		}
	}
	return false
}

// namesInUse are those of all containers and of the images that they mount. The empty name is nobody's.
func (c *Collector) namesInUse(ctx context.Context) (names, error) {
	list, err := c.Runtime.ListContainers(ctx, nil)
	if err != nil {
		return nil, err
	}
	used := names{}
	for _, container := range list {
		used[container.GetImageId()], used[container.GetImageRef()], used[container.GetImage().GetImage()] = true, true, true
		answer, err := c.Runtime.ContainerStatus(ctx, container.Id, false)
		if grpcstatus.Code(err) == codes.NotFound {
			continue // removed meanwhile
		}
		if err != nil {
			return nil, err
		}
		for _, mount := range answer.GetStatus().GetMounts() {
			used[mount.GetImage().GetImage()] = true
		}
	}
	delete(used, "")
	return used, nil
}
