package replicas_test

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"github.com/setpoint-io/setpoint/test/simulation/replicas"
)

var (
	seeds  = flag.Uint64("seeds", 2, "how many seeds are played")
	first  = flag.Uint64("seed", 1, "the first seed")
	paused = flag.Uint64("paused", 1, "how many seeds are played of pauses alone")
	length = flag.Duration("length", 4*time.Second, "how long faults come in each seed, in fake time")
	steps  = flag.String("steps", "", "a file that gets every step of the last seed")
	repeat = flag.Int("repeat", 1, "how often each seed is played; the traces are compared")
)

// play plays a seed in a bubble, on one processor and without the collector: both would choose an order of their own.
func play(t *testing.T, plan replicas.Plan) (did replicas.Summary, err error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	runtime.GC()
	runtime.GC() // what pools keep is gone after the second
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	cryptotest.SetGlobalRandom(t, plan.Seed)
	setOrder(plan.Seed + 1)
	defer setOrder(0)
	synctest.Test(t, func(*testing.T) { did, err = replicas.Run(plan) })
	return did, err
}

// TestPaused plays pauses alone: what was under way when a server stood still arrives when others have gone on.
func TestPaused(t *testing.T) {
	for seed := range *paused {
		did, err := play(t, replicas.Plan{Seed: seed, Servers: 3, Length: *length, Dir: t.TempDir(), Pauses: true})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		t.Logf("seed %d: %d steps, %+v", seed, did.Steps, did)
	}
}

func TestReplicas(t *testing.T) {
	for seed := *first; seed < *first+*seeds; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			begun := time.Now()
			plan := replicas.Plan{Seed: seed, Servers: 3 + 2*int(seed%4/3), Length: *length}
			traces := map[[32]byte]int{}
			for range *repeat {
				if *steps != "" {
					f, err := os.Create(*steps)
					if err != nil {
						t.Fatal(err)
					}
					defer f.Close()
					plan.Log = f
				}
				plan.Dir = t.TempDir()
				did, err := play(t, plan)
				if err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				if did.Reads == 0 || did.Events == 0 || did.Faults == 0 || did.Leaders == 0 {
					t.Errorf("seed %d: the world did next to nothing: %+v", seed, did)
				}
				traces[did.Trace]++
				t.Logf("seed %d took %v: trace %x, %d steps, %+v", seed, time.Since(begun), did.Trace[:8], did.Steps, did)
			}
			if *repeat > 1 {
				t.Logf("seed %d: %d traces of %d", seed, len(traces), *repeat)
			}
		})
	}
}
