package embedded

import (
	"context"
	"encoding/base64"
	"errors"
	"strconv"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/images"
)

// ListImages lists images; a filter names one.
func (r *Runtime) ListImages(_ context.Context, filter *runtimeapi.ImageFilter) ([]*runtimeapi.Image, error) {
	var list []*runtimeapi.Image
	if wanted := filter.GetImage().GetImage(); wanted != "" {
		if image, err := r.images.Get(wanted); err == nil {
			list = append(list, imageItem(image))
		}
		return list, nil
	}
	for _, image := range r.images.List() {
		list = append(list, imageItem(image))
	}
	return list, nil
}

func imageItem(image images.Image) *runtimeapi.Image {
	item := &runtimeapi.Image{
		Id: image.ID, RepoTags: image.Tags, RepoDigests: image.Digests, Size: image.SizeBytes, Pinned: image.Kept(),
	}
	user, _, _ := strings.Cut(image.Config.User, ":")
	if uid, err := strconv.ParseInt(user, 10, 64); err == nil {
		item.Uid = &runtimeapi.Int64Value{Value: uid}
	} else {
		item.Username = user
	}
	return item
}

// ImageStatus reports one image; without it the response is empty, as CRI wants. A new archive in the folder is seen.
func (r *Runtime) ImageStatus(_ context.Context, spec *runtimeapi.ImageSpec, _ bool) (*runtimeapi.ImageStatusResponse, error) {
	image, err := r.images.Get(spec.GetImage())
	if errors.Is(err, images.ErrNotFound) {
		if loadErr := r.images.LoadArchives(); loadErr != nil {
			r.config.Logger.Warn("image archives", "err", loadErr)
		}
		image, err = r.images.Get(spec.GetImage())
	}
	if err != nil {
		return &runtimeapi.ImageStatusResponse{}, nil // CRI: an absent image is an empty answer
	}
	return &runtimeapi.ImageStatusResponse{Image: imageItem(image)}, nil
}

// PullImage makes an image present and returns its id.
func (r *Runtime) PullImage(
	ctx context.Context,
	spec *runtimeapi.ImageSpec,
	auth *runtimeapi.AuthConfig,
	_ *runtimeapi.PodSandboxConfig,
) (string, error) {
	credentials, err := credentialsOf(auth)
	if err != nil {
		return "", status.Errorf(codes.InvalidArgument, "registry credentials: %v", err)
	}
	image, err := r.images.Pull(ctx, spec.GetImage(), credentials)
	if err != nil {
		return "", coded(err)
	}
	return image.ID, nil
}

// PullProgress implements cri.PullTeller.
func (r *Runtime) PullProgress(image string) (bytes, total int64, underway bool) {
	return r.images.Progress(image)
}

func credentialsOf(auth *runtimeapi.AuthConfig) (images.Auth, error) {
	credentials := images.Auth{
		Username: auth.GetUsername(), Password: auth.GetPassword(), IdentityToken: auth.GetIdentityToken(),
		RegistryToken: auth.GetRegistryToken(),
	}
	if auth.GetAuth() == "" {
		return credentials, nil
	}
	decoded, err := base64.StdEncoding.DecodeString(auth.GetAuth())
	if err != nil {
		return images.Auth{}, err
	}
	user, password, ok := strings.Cut(string(decoded), ":")
	if !ok {
		return images.Auth{}, errors.New("auth is not user:password")
	}
	credentials.Username, credentials.Password = user, strings.TrimRight(password, "\x00")
	return credentials, nil
}

// RemoveImage forgets an image. Layers that containers use stay until the last of them is gone.
func (r *Runtime) RemoveImage(_ context.Context, spec *runtimeapi.ImageSpec) error {
	return coded(r.images.Remove(spec.GetImage(), r.layersInUse()))
}

// Images is the runtime's store.
func (r *Runtime) Images() *images.Store { return r.images }

// ImagesInUse are the images and layers of containers, ended ones too.
func (r *Runtime) ImagesInUse() (images.Use, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	use := images.Use{Images: map[string]bool{}, Layers: map[string]bool{}}
	for _, c := range r.containers {
		use.Add(c.record.ImageID, c.record.Layers, c.record.Volumes)
	}
	return use, nil
}

func (r *Runtime) layersInUse() map[string]bool {
	use, _ := r.ImagesInUse() // it knows always
	return use.Layers
}

// ImageFsInfo reports the use of the file systems of images and containers, which are one.
func (r *Runtime) ImageFsInfo(context.Context) (*runtimeapi.ImageFsInfoResponse, error) {
	var stat syscall.Statfs_t
	if err := syscall.Statfs(r.images.LayersDir(), &stat); err != nil {
		return nil, coded(err)
	}
	var bytes uint64
	for _, image := range r.images.List() {
		bytes += image.SizeBytes
	}
	usage := &runtimeapi.FilesystemUsage{
		Timestamp: time.Now().UnixNano(), FsId: &runtimeapi.FilesystemIdentifier{Mountpoint: r.images.LayersDir()},
		UsedBytes: value(bytes), InodesUsed: value(stat.Files - stat.Ffree),
	}
	containerBytes, containerInodes := diskUsage(r.containersDir())
	containers := &runtimeapi.FilesystemUsage{
		Timestamp: time.Now().UnixNano(), FsId: &runtimeapi.FilesystemIdentifier{Mountpoint: r.containersDir()},
		UsedBytes: value(containerBytes), InodesUsed: value(containerInodes),
	}
	return &runtimeapi.ImageFsInfoResponse{
		ImageFilesystems: []*runtimeapi.FilesystemUsage{usage}, ContainerFilesystems: []*runtimeapi.FilesystemUsage{containers},
	}, nil
}
