package images

import (
	"runtime"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// fitsPlatform takes an image that says nothing about its platform.
func fitsPlatform(platform *v1.Platform) bool {
	return platform == nil || platform.Architecture == "" ||
		(platform.OS == "linux" && platform.Architecture == runtime.GOARCH)
}
