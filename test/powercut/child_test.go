package powercut

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"

	"github.com/setpoint-io/setpoint/raftstore"
	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/replica"
)

const (
	// childDir makes the test binary a store on that directory; childRound names the
	// keys it writes.
	childDir, childRound = "POWERCUT_CHILD_DIR", "POWERCUT_CHILD_ROUND"

	// The child's lines: what it found, that it serves, what was acknowledged.
	lineFound, lineReady, lineAcknowledged = "found", "ready", "acknowledged"

	childWriters = 8
	valueBytes   = 1 << 10
	// snapshotBytes is small, so that cuts meet snapshots and a log being cut.
	snapshotBytes = 256 << 10
)

// runChild opens the store, tells what is in it, and writes until it is killed.
func runChild(dir, round string) int {
	ctx := context.Background()
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	store, err := raftstore.Open(ctx, raftstore.Config{
		Name: "n1", DataDir: dir, AdvertiseAddress: "127.0.0.1:1", Logger: logger,
		InitialServers: []raftstore.Server{{ID: "n1", Address: "127.0.0.1:1"}},
		Timing:         replica.Timing{SnapshotBytes: snapshotBytes},
		Fatal:          func(error) { select {} }, // the power is gone: wait to be killed
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	root, err := store.ReadIndex(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	for found := range root.All("/") {
		fmt.Println(lineFound, found.Key)
	}
	fmt.Println(lineReady, "")
	writeForever(ctx, store, round)
	return 0
}

func writeForever(ctx context.Context, store *raftstore.Store, round string) {
	var writers sync.WaitGroup
	value := make([]byte, valueBytes)
	for writer := range childWriters {
		writers.Go(func() {
			for i := 0; ; i++ {
				key := fmt.Sprintf("/r%s/w%d/%d", round, writer, i)
				result, err := store.Propose(ctx, command.Command{Ops: []command.Op{{Kind: command.Put, Key: key, Value: value}}})
				if err != nil || result.Code != command.OK {
					select {} // unacknowledged; wait to be killed
				}
				fmt.Println(lineAcknowledged, key)
			}
		})
	}
	writers.Wait()
}
