package imagesocket

import (
	"time"

	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/images"
)

// Image is what is told of one image.
type Image struct {
	ID        string    `json:"id"`
	Tags      []string  `json:"tags"`
	Digests   []string  `json:"digests"`
	SizeBytes uint64    `json:"sizeBytes"`
	LoadedAt  time.Time `json:"loadedAt"`
	// InUse says that a container has it, Kept that it stays even if none does: an archive brought it, or this binary.
	InUse bool `json:"inUse"`
	Kept  bool `json:"kept"`
}

// List is what a node has, and what is coming.
type List struct {
	Images  []Image          `json:"images"`
	Pulling []images.Pulling `json:"pulling"`
}

// Pruned is what was removed.
type Pruned struct {
	Images     []Image `json:"images"`
	FreedBytes uint64  `json:"freedBytes"`
}

type pullOrder struct {
	Image string      `json:"image"`
	Auth  images.Auth `json:"auth"`
}

// pullStep is one line: Image or Error end the pull.
type pullStep struct {
	Progress *images.Pulling `json:"progress,omitempty"`
	Image    *Image          `json:"image,omitempty"`
	Error    string          `json:"error,omitempty"`
}

func summaries(list []images.Image, use images.Use) []Image {
	all := make([]Image, len(list))
	for i, image := range list {
		all[i] = summaryOf(image, use)
	}
	return all
}

func summaryOf(image images.Image, use images.Use) Image {
	return Image{
		ID: image.ID, Tags: image.Tags, Digests: image.Digests, SizeBytes: image.SizeBytes, LoadedAt: image.LoadedAt,
		InUse: use.Images[image.ID], Kept: image.Kept(),
	}
}
