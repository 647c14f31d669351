package images

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
)

// Verify says of which images that are on the node a pod has to show that it may use them; upstream's
// imagePullCredentialsVerificationPolicy.
type Verify string

// The policies, by upstream's names. The empty one is VerifyPulled.
const (
	VerifyNever       Verify = "NeverVerify"
	VerifyPulled      Verify = "NeverVerifyPreloadedImages" // those that this agent pulled
	VerifyAllButNamed Verify = "NeverVerifyAllowlistedImages"
	VerifyAlways      Verify = "AlwaysVerify"
)

// Verification is a policy with the images that VerifyAllButNamed leaves out: names without tags, or beginnings of names with
// "/*".
type Verification struct {
	Policy  Verify
	Allowed []string
}

var (
	errVerify       = errors.New("must be NeverVerify, NeverVerifyPreloadedImages, NeverVerifyAllowlistedImages or AlwaysVerify")
	errAllowedAlone = errors.New("may be set with NeverVerifyAllowlistedImages only")
	errNoneAllowed  = errors.New("must name images with NeverVerifyAllowlistedImages")
	errPattern      = errors.New("must be the name of an image without tag and digest, or the beginning of names and /*")
)

// Validate names the field of a KubeletConfiguration that is wrong.
func (v Verification) Validate() error {
	if !slices.Contains([]Verify{"", VerifyNever, VerifyPulled, VerifyAllButNamed, VerifyAlways}, v.Policy) {
		return fmt.Errorf("imagePullCredentialsVerificationPolicy: %q: %w", v.Policy, errVerify)
	}
	if len(v.Allowed) > 0 && v.Policy != VerifyAllButNamed {
		return fmt.Errorf("preloadedImagesVerificationAllowlist: %w", errAllowedAlone)
	}
	for i, pattern := range v.Allowed {
		start, _ := strings.CutSuffix(pattern, "/*")
		if _, err := name.NewRepository(start); err != nil || strings.Contains(start, "*") {
			return fmt.Errorf("preloadedImagesVerificationAllowlist[%d]: %q: %w", i, pattern, errPattern)
		}
	}
	if v.Policy == VerifyAllButNamed && len(v.Allowed) == 0 {
		return fmt.Errorf("preloadedImagesVerificationAllowlist: %w", errNoneAllowed)
	}
	return nil
}

// needed reports whether image, which is here, has to be verified. Pulled: this agent brought it.
func (v Verification) needed(image string, pulled bool) bool {
	switch v.Policy {
	case VerifyNever:
		return false
	case VerifyAlways:
		return true
	case VerifyAllButNamed:
		return !slices.ContainsFunc(v.Allowed, func(pattern string) bool { return covers(pattern, image) })
	default:
		return pulled
	}
}

// covers compares names with all their parts.
func covers(pattern, image string) bool {
	repository := strings.TrimPrefix(repositoryOf(image), "index.")
	if start, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(repository, start)
	}
	return strings.TrimPrefix(repositoryOf(pattern), "index.") == repository
}
