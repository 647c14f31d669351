package simulation_test

import (
	"os"
	"strconv"
	"testing"

	"github.com/setpoint-io/setpoint/test/simulation"
)

const (
	// seedsOfAPush are played by each run of the tests; SEEDS=n plays n.
	seedsOfAPush = 300
	// stepsOfASeed is how long one seed is.
	stepsOfASeed = 300
	// twiceEvery is how many seeds are played once for each that is played twice.
	twiceEvery = 10
)

func TestSimulation(t *testing.T) {
	seeds := seedsOfAPush
	if text := os.Getenv("SEEDS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		seeds = n
	}
	all := simulation.Summary{}
	for seed := range uint64(seeds) {
		did, err := simulation.Run(seed, stepsOfASeed)
		if err != nil {
			t.Fatal(err)
		}
		all = added(all, did)
		if seed%twiceEvery != 0 {
			continue
		}
		if again, err := simulation.Run(seed, stepsOfASeed); err != nil || again != did {
			t.Fatalf("seed %d is not one run: %+v, then %+v, %v", seed, did, again, err)
		}
	}
	t.Logf("%d seeds: %+v", seeds, all)
	if min(all.Retries, all.Events, all.Moves, all.Relists, all.Snapshots, all.Restores, all.Cuts, all.Increments) < seeds/2 {
		t.Errorf("too little happened in %d seeds: %+v", seeds, all)
	}
}

func added(a, b simulation.Summary) simulation.Summary {
	return simulation.Summary{
		Entries: a.Entries + b.Entries, Retries: a.Retries + b.Retries, Events: a.Events + b.Events,
		Moves: a.Moves + b.Moves, Relists: a.Relists + b.Relists, Snapshots: a.Snapshots + b.Snapshots,
		Restores: a.Restores + b.Restores, Cuts: a.Cuts + b.Cuts, Increments: a.Increments + b.Increments,
	}
}
