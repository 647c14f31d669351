package judges

import (
	"testing"
	"testing/synctest"
)

// TestStories judges every version of every object of the kinds that no scene has.
func TestStories(t *testing.T) { Play(t).Judged(t).Report(t) }

func TestStoriesInVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { PlayVirtual(t).Judged(t).Report(t) })
}
