package images

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/registries"
)

// Auth is what a registry may want; the zero value is anonymous.
type Auth = authn.AuthConfig

// Pull makes the image present and returns it, or says why the registry did not give it: what is here may be for
// others. Loopback registries are spoken to by plain HTTP. Images of LocalDomain come from this machine, and so does an
// image that an archive in the folder provides, unless its registry answers that there is none or not for these
// credentials.
func (s *Store) Pull(ctx context.Context, ref string, auth Auth) (Image, error) {
	normal, err := Normalize(ref)
	if err != nil {
		return Image{}, err
	}
	// Only pulls with the same credentials may share an answer.
	image, err, _ := s.pulls.Do(fmt.Sprintf("%s %q", normal, auth), func() (any, error) { return s.pull(ctx, normal, auth) })
	if err != nil {
		return Image{}, err
	}
	return image.(Image), nil
}

func (s *Store) pull(ctx context.Context, normal string, auth Auth) (Image, error) {
	if err := s.LoadArchives(); err != nil {
		s.config.Logger.Warn("image archives", "err", err)
	}
	if strings.HasPrefix(normal, LocalDomain+"/") {
		return s.Get(normal)
	}
	image, err := s.fetch(ctx, normal, auth)
	if err == nil {
		return image, nil
	}
	if local, localErr := s.Get(normal); localErr == nil && slices.Contains(local.Archived, normal) && !refused(err) {
		s.config.Logger.Warn("registry failed, using the image of an archive", "image", normal, "err", err)
		return local, nil
	}
	return Image{}, fmt.Errorf("pull %s: %w", normal, err)
}

// refused tells a registry's own answer from a registry that cannot be asked.
func refused(err error) bool {
	answer := (*transport.Error)(nil)
	return errors.As(err, &answer) &&
		slices.Contains([]int{http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound}, answer.StatusCode)
}

func (s *Store) fetch(ctx context.Context, normal string, auth Auth) (Image, error) {
	ref, err := name.ParseReference(normal)
	if err != nil {
		return Image{}, fmt.Errorf("%w: %w", ErrInvalidName, err)
	}
	endpoints, err := s.config.Registries.Endpoints(ref.Context().RegistryStr())
	if err != nil {
		return Image{}, err
	}
	p := s.beginPull(normal)
	defer s.endPull(p)
	for i, endpoint := range endpoints {
		image, err := s.fetchAt(ctx, endpoint, ref, auth, p)
		if err == nil || i == len(endpoints)-1 || ctx.Err() != nil {
			return image, err
		}
		s.config.Logger.Info("the next place is asked for an image", "image", normal, "asked", endpoint.String(), "err", err)
	}
	return Image{}, errNowhere
}

var errNowhere = errors.New("nothing is pulled from this registry")

// fetchAt fetches the image from one of the places that may have it.
func (s *Store) fetchAt(ctx context.Context, at registries.Endpoint, ref name.Reference, auth Auth, p *pulling) (Image, error) {
	normal := ref.Name()
	there, err := at.Reference(ref)
	if err != nil {
		return Image{}, err
	}
	image, err := remote.Image(there,
		remote.WithContext(ctx),
		remote.WithTransport(counting{impatient{at.Transport}, p}),
		remote.WithAuth(authn.FromConfig(at.Credentials(auth))),
		remote.WithPlatform(v1.Platform{OS: "linux", Architecture: runtime.GOARCH}))
	if err != nil {
		return Image{}, err
	}
	digest, err := image.Digest()
	if err != nil {
		return Image{}, err
	}
	if err := checkManifest(image); err != nil {
		return Image{}, err
	}
	if err := s.expect(p, image); err != nil {
		return Image{}, err
	}
	repository, tag := splitName(normal)
	digests := []string{repository + "@" + digest.String()}
	if _, byDigest, ok := strings.Cut(normal, "@"); ok {
		// The digest asked for may be an index's; both name this image.
		digests = union(digests, []string{repository + "@" + byDigest})
	}
	var tags []string
	if tag != "" {
		tags = []string{normal}
	}
	others, end := s.others(ctx, p)
	defer end()
	return s.addFrom(others, image, plain, Image{Tags: tags, Digests: digests})
}

// splitName cuts a normalised reference; tag is empty for a reference by digest.
func splitName(normal string) (repository, tag string) {
	if repository, _, ok := strings.Cut(normal, "@"); ok {
		return repository, ""
	}
	colon := strings.LastIndexByte(normal, ':')
	return normal[:colon], normal[colon+1:]
}
