//go:build compose

package consistency

import (
	"flag"
	"path/filepath"
	"testing"

	"github.com/setpoint-io/setpoint/test/consistency/cluster"
)

var (
	trust      = flag.String("trust", filepath.Join("..", "..", ".compose"), "folder of the cluster's keys")
	containers = flag.String("containers", "", "before the names of servers in those of containers")
)

// TestCompose is TestConsistency on the containers of `make compose-up`.
func TestCompose(t *testing.T) {
	servers, err := cluster.NewCompose(*trust, *containers)
	if err != nil {
		t.Fatalf("run make compose-up first: %v", err)
	}
	t.Cleanup(func() {
		if err := servers.Close(); err != nil {
			t.Error(err)
		}
	})
	examine(t, servers, Config{Dir: *keep, Duration: *duration, Seed: *seed, LeaderKills: *leaderKills, Linger: *linger, Rate: *rate}, *faults)
}
