//go:build compose

package consistency

import (
	"path/filepath"
	"testing"

	"github.com/setpoint-io/setpoint/test/consistency/cluster"
)

// TestCompose is TestConsistency on the containers of `make compose-up`.
func TestCompose(t *testing.T) {
	servers, err := cluster.NewCompose(filepath.Join("..", "..", ".compose"))
	if err != nil {
		t.Fatalf("run make compose-up first: %v", err)
	}
	t.Cleanup(func() {
		if err := servers.Close(); err != nil {
			t.Error(err)
		}
	})
	examine(t, servers, *keep)
}
