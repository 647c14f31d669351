package consistency

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/test/consistency/cluster"
)

// The flags of a long run; without them it is short.
var (
	duration    = flag.Duration("duration", 25*time.Second, "how long calm and faults last together")
	seed        = flag.Uint64("seed", 1, "of faults and operations")
	faults      = flag.String("faults", "kill-leader,pause-leader,partition-leader", "first letters of the faults wanted, with commas; empty: all")
	leaderKills = flag.Int("leader-kills", 0, "kill so many leaders, nothing else")
	rate        = flag.Int("rate", 400, "operations a second; 0: as many as go")
	linger      = flag.Duration("linger", 0, "how long each fault lasts; 0: a few seconds")
	whole       = flag.Bool("whole", false, "with a disk that loses power, and with an act of backup and restore")
	count       = flag.Int("servers", cluster.ServersMin, "how many servers, 3 to 5")
	gapMax      = flag.Duration("gap-max", 0, "how long writes may be held up by a fault of one server, 99 of 100 times; 0: only as Report.bound says")
	other       = flag.String("other", "", "another build of setpoint, which every second server runs; empty: none")
	binary      = flag.String("binary", "", "setpoint to examine; empty: that of SETPOINT_TEST_BINARY, or built from here")
	keep        = flag.String("keep", "", "folder for logs, data and histories; empty: a temporary one")
)

// binaryVariable names the program that test/run.sh has made.
const binaryVariable = "SETPOINT_TEST_BINARY"

// TestConsistency examines three servers under faults. A run that finds something can be
// repeated with the command it prints: the same faults in the same order.
func TestConsistency(t *testing.T) {
	dir := *keep
	if dir == "" {
		dir = t.TempDir()
	}
	with := cluster.Config{Binary: build(t), Other: *other, Servers: *count, Dir: dir, Power: *whole,
		KubeletConfig: filepath.Join(root(t), "deploy", "kubelet-shared-disk.yaml")}
	examine(t, start(t, with), Config{Dir: dir, Duration: *duration, Seed: *seed, LeaderKills: *leaderKills, Linger: *linger, Rate: *rate,
		Restore: *whole, GapMax: *gapMax}, *faults)
}

// TestFive examines five servers for a short time: two are lost at once, and one is replaced, while clients write.
func TestFive(t *testing.T) {
	dir := t.TempDir()
	examine(t, start(t, cluster.Config{Binary: build(t), Servers: cluster.ServersMax, Dir: dir}),
		Config{Dir: dir, Duration: 20 * time.Second, Seed: *seed, Rate: 200}, "kill-minority,replace-any")
}

// start makes the servers, which end with the test.
func start(t *testing.T, with cluster.Config) *cluster.Processes {
	t.Helper()
	servers, err := cluster.NewProcesses(with)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := servers.Close(); err != nil {
			t.Error(err)
		}
	})
	if servers.Lacks != nil {
		t.Logf("without faults of networks and disks, and without agents: %v", servers.Lacks)
	}
	return servers
}

// examine runs one configuration on a cluster, with the faults whose names begin with these.
func examine(t *testing.T, servers cluster.Cluster, cfg Config, faults string) {
	t.Helper()
	cfg.Cluster, cfg.Log = servers, func(format string, args ...any) { t.Logf(format, args...) }
	if faults != "" {
		cfg.Faults = strings.Split(faults, ",")
	}
	report, err := Run(context.WithoutCancel(t.Context()), cfg)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Print(report)
	if report.Bad() > 0 {
		t.Errorf("%d violations; histories, data and logs are in %s\nagain: make consistency DURATION=%v SEED=%d FAULTS=%s SERVERS=%d LEADER_KILLS=%d LINGER=%v RATE=%d",
			report.Bad(), cfg.Dir, cfg.Duration, cfg.Seed, faults, servers.Size(), cfg.LeaderKills, cfg.Linger, cfg.Rate)
	}
}

// root is the folder of the module.
func root(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// build makes the program under test.
func build(t *testing.T) string {
	t.Helper()
	if made := cmp.Or(*binary, os.Getenv(binaryVariable)); made != "" {
		path, err := filepath.Abs(made)
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	path := filepath.Join(t.TempDir(), "setpoint")
	cmd := exec.Command("go", "build", "-o", path, "github.com/setpoint-io/setpoint/cmd/setpoint")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return path
}
