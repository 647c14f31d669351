package embedded

import (
	"context"
	"encoding/base64"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/images"
)

// imageService answers CRI's questions about images.
type imageService struct {
	store         *images.Store
	table         *table // says which layers are in use
	containersDir string
	logger        *slog.Logger
}

// ListImages lists images; a filter names one.
func (s *imageService) ListImages(_ context.Context, filter *runtimeapi.ImageFilter) ([]*runtimeapi.Image, error) {
	var list []*runtimeapi.Image
	if wanted := filter.GetImage().GetImage(); wanted != "" {
		if image, err := s.store.Get(wanted); err == nil {
			list = append(list, imageItem(image))
		}
		return list, nil
	}
	for _, image := range s.store.List() {
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
func (s *imageService) ImageStatus(_ context.Context, spec *runtimeapi.ImageSpec, _ bool) (*runtimeapi.ImageStatusResponse, error) {
	image, err := s.store.Get(spec.GetImage())
	if errors.Is(err, images.ErrNotFound) {
		if loadErr := s.store.LoadArchives(); loadErr != nil {
			s.logger.Warn("image archives", "err", loadErr)
		}
		image, err = s.store.Get(spec.GetImage())
	}
	if err != nil {
		return &runtimeapi.ImageStatusResponse{}, nil // CRI: an absent image is an empty answer
	}
	return &runtimeapi.ImageStatusResponse{Image: imageItem(image)}, nil
}

// PullImage makes an image present and returns its id.
func (s *imageService) PullImage(
	ctx context.Context,
	spec *runtimeapi.ImageSpec,
	auth *runtimeapi.AuthConfig,
	_ *runtimeapi.PodSandboxConfig,
) (string, error) {
	credentials, err := credentialsOf(auth)
	if err != nil {
		return "", status.Errorf(codes.InvalidArgument, "registry credentials: %v", err)
	}
	image, err := s.store.Pull(ctx, spec.GetImage(), credentials)
	if err != nil {
		return "", coded(err)
	}
	return image.ID, nil
}

// PullProgress implements cri.PullTeller.
func (s *imageService) PullProgress(image string) (bytes, total int64, underway bool) {
	return s.store.Progress(image)
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
func (s *imageService) RemoveImage(_ context.Context, spec *runtimeapi.ImageSpec) error {
	return coded(s.store.Remove(spec.GetImage(), s.table.layersInUse()))
}

// Images is the runtime's store.
func (s *imageService) Images() *images.Store { return s.store }

// ImageFsInfo reports the use of the file systems of images and containers, which are one.
func (s *imageService) ImageFsInfo(context.Context) (*runtimeapi.ImageFsInfoResponse, error) {
	var stat syscall.Statfs_t
	if err := syscall.Statfs(s.store.LayersDir(), &stat); err != nil {
		return nil, coded(err)
	}
	var bytes uint64
	for _, image := range s.store.List() {
		bytes += image.SizeBytes
	}
	usage := &runtimeapi.FilesystemUsage{
		Timestamp: time.Now().UnixNano(), FsId: &runtimeapi.FilesystemIdentifier{Mountpoint: s.store.LayersDir()},
		UsedBytes: value(bytes), InodesUsed: value(stat.Files - stat.Ffree),
	}
	containerBytes, containerInodes := diskUsage(s.containersDir)
	containers := &runtimeapi.FilesystemUsage{
		Timestamp: time.Now().UnixNano(), FsId: &runtimeapi.FilesystemIdentifier{Mountpoint: s.containersDir},
		UsedBytes: value(containerBytes), InodesUsed: value(containerInodes),
	}
	return &runtimeapi.ImageFsInfoResponse{
		ImageFilesystems: []*runtimeapi.FilesystemUsage{usage}, ContainerFilesystems: []*runtimeapi.FilesystemUsage{containers},
	}, nil
}
