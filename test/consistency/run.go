package consistency

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/setpoint-io/setpoint/test/consistency/check"
	"github.com/setpoint-io/setpoint/test/consistency/cluster"
	"github.com/setpoint-io/setpoint/test/consistency/history"
	"github.com/setpoint-io/setpoint/test/consistency/nemesis"
	"github.com/setpoint-io/setpoint/test/consistency/pods"
	"github.com/setpoint-io/setpoint/test/consistency/workload"
)

const (
	// An epoch ends after this, for fresh keys.
	epochLength = 45 * time.Second
	calmShare   = 6 // of the duration, the calm act is one part in so many
	calmMax     = 15 * time.Second
	healLength  = 4 * time.Second
	// calmRateMin is how many operations the calm act must have for each second of one epoch. It takes up to calmEpochsMax epochs for them.
	calmRateMin   = 50
	calmEpochsMax = 4
	agreeInterval = 100 * time.Millisecond
)

// A Config is one run.
type Config struct {
	Cluster  cluster.Cluster
	Dir      string // for histories
	Duration time.Duration
	Seed     uint64
	// Faults are the first letters of those wanted; none: all that the cluster can suffer.
	Faults []string
	// LeaderKills, if not 0, is how many leaders are killed, and nothing else done, however long it takes.
	LeaderKills int
	// Linger, if not 0, is how long each fault lasts.
	Linger time.Duration
	// Restore adds an act: all servers are made anew of a backup.
	Restore bool
	// GapMax, if not 0, bounds the gaps in writes around the faults of one server; see Report.bound.
	GapMax time.Duration
	Rate   int // operations a second; 0: as many as go
	Log    func(format string, args ...any)
}

// run is one that runs.
type run struct {
	Config
	clock   history.Clock
	report  *Report
	nemesis *nemesis.Nemesis
	pods    *pods.Pods // nil: there are no nodes
	epochs  int

	checking sync.Mutex // one epoch is checked at a time
	checks   sync.WaitGroup
}

// Run starts the servers and runs all three acts. What was found is in the report; an error
// means that the run itself could not be made.
func Run(ctx context.Context, cfg Config) (*Report, error) {
	r := &run{Config: cfg, clock: history.NewClock(), report: &Report{Seed: cfg.Seed}}
	for i := range cfg.Cluster.Size() {
		if err := cfg.Cluster.Start(i); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(nemesis.Settle(ctx, cfg.Cluster), r.startPods(ctx)); err != nil {
		return nil, err
	}
	faults := nemesis.Select(cfg.Cluster, cfg.Faults)
	if cfg.LeaderKills > 0 {
		faults = nemesis.Select(cfg.Cluster, []string{"kill-leader"})
	}
	r.nemesis = nemesis.New(cfg.Cluster, r.clock, faults, cfg.Seed, cfg.Log)
	switch {
	case cfg.LeaderKills > 0:
		r.nemesis.Pace = nemesis.Quick
	case cfg.Linger > 0:
		r.nemesis.Pace = nemesis.Lingering(cfg.Linger)
	}
	r.calm(ctx)
	r.faults(ctx)
	r.heal(ctx)
	r.lookAtPods(ctx, "the faults")
	if err := r.restore(ctx); err != nil {
		r.report.find("restore: %v", err)
	}
	r.checks.Wait()
	r.report.took = time.Duration(r.clock.Now())
	r.report.faults(r.nemesis)
	r.report.bound(r.GapMax)
	return r.report, errors.Join(ctx.Err(), history.SaveFaults(filepath.Join(cfg.Dir, "faults.jsonl"), r.nemesis.Done))
}

// calm goes on, on a busy machine, until there was enough to examine.
func (r *run) calm(ctx context.Context) {
	length := min(r.Duration/calmShare, calmMax)
	operations, least := 0, int(length.Seconds()*calmRateMin)
	for range calmEpochsMax {
		if operations += r.epoch(ctx, length); operations >= least {
			return
		}
	}
	r.report.find("the calm act had %d operations, fewer than %d: too little to examine anything", operations, least)
}

// faults runs epochs until the nemesis ends, by time or by its number of leader kills.
func (r *run) faults(ctx context.Context) {
	hunting, stop := context.WithCancel(ctx)
	defer stop()
	if r.LeaderKills == 0 {
		hunting, stop = context.WithTimeout(ctx, max(r.Duration-time.Duration(r.clock.Now()), time.Second))
		defer stop()
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.nemesis.Run(hunting, r.LeaderKills)
	}()
	for ended := false; !ended; {
		working, finish := context.WithCancel(ctx)
		go func() {
			select {
			case <-done:
			case <-working.Done():
			}
			finish()
		}()
		r.epochUntil(ctx, working, epochLength)
		finish()
		select {
		case <-done:
			ended = true
		default:
		}
	}
}

// heal: with all faults ended, the cluster lives, and its replicas are equal.
func (r *run) heal(ctx context.Context) {
	err := nemesis.Settle(ctx, r.Cluster)
	if err == nil {
		r.epoch(ctx, healLength)
		err = r.allWrite(ctx)
	}
	if err == nil {
		err = r.agree(ctx)
	}
	if err != nil {
		r.report.find("heal: %v", err)
	}
}

func (r *run) epoch(ctx context.Context, length time.Duration) int {
	return r.epochUntil(ctx, ctx, length)
}

// epochUntil runs an epoch, whose clients end with working, and has it checked. It returns the number of its operations.
func (r *run) epochUntil(ctx, working context.Context, length time.Duration) int {
	r.epochs++
	epoch := workload.Epoch{Cluster: r.Cluster, Clock: r.clock, Namespace: fmt.Sprintf("epoch-%d", r.epochs), Kind: workload.KindOf(r.epochs), Seed: r.Seed + uint64(r.epochs),
		Length: length, Rate: r.Rate, SettleTimeout: 2 * nemesis.SettleTimeout}
	e, err := epoch.Run(ctx, working)
	if err != nil {
		r.report.find("%v", err)
		if e != nil { // without its end nobody can say what was lost
			err = e.Save(filepath.Join(r.Dir, e.Namespace+".jsonl"))
			r.Log("%s is kept, not judged: %v", e.Namespace, err)
		}
		return 0
	}
	// What this run is about comes first: an epoch that waits to be checked is memory.
	r.checking.Lock()
	r.checks.Go(func() {
		defer r.checking.Unlock()
		r.examine(e)
	})
	return len(e.Ops)
}

// examine checks an epoch and keeps its history.
func (r *run) examine(e *history.Epoch) {
	results := check.All(e)
	r.report.add(e, results)
	path := filepath.Join(r.Dir, e.Namespace+".jsonl")
	if err := e.Save(path); err != nil {
		r.report.find("keeping %s: %v", path, err)
	}
	bad := 0
	for _, result := range results {
		bad += result.Bad
	}
	r.Log("%s: %d operations, %d violations", e.Namespace, len(e.Ops), bad)
	if bad == 0 {
		_ = os.Remove(path) // only what shows something is worth its space
	}
}

// allWrite: every server takes a write.
func (r *run) allWrite(ctx context.Context) error {
	for i := range r.Cluster.Size() {
		if err := workload.Touch(ctx, r.Cluster, i, fmt.Sprintf("healed-%d", i+1), nemesis.SettleTimeout); err != nil {
			return err
		}
	}
	return nil
}

// agree waits until the state of all servers is the same, by its hash at one revision.
func (r *run) agree(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, nemesis.SettleTimeout)
	defer cancel()
	for {
		hashes, err := stateHashes(ctx, r.Cluster)
		switch {
		case err == nil && len(hashes) == 1:
			r.report.equal = true
			return nil
		case err == nil && sameRevision(hashes):
			return fmt.Errorf("%w: %v", errDiffer, hashes)
		}
		select {
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("the servers do not come to one revision: %v", hashes), err)
		case <-time.After(agreeInterval):
		}
	}
}

var (
	errDiffer = errors.New("the servers hold different states of one revision")
	errNoHash = errors.New("the server tells no state hash")
)

// stateAt is a state's hash and its revision.
type stateAt struct {
	revision uint64
	hash     string
}

// stateHashes asks all servers, and says who holds what.
func stateHashes(ctx context.Context, c cluster.Cluster) (map[stateAt]string, error) {
	hashes := map[stateAt]string{}
	for i := range c.Size() {
		status, err := cluster.Ask(ctx, c, i)
		if err != nil {
			return hashes, err
		}
		if status.StateHash == "" {
			return hashes, fmt.Errorf("%s: %w", cluster.Name(i), errNoHash)
		}
		hashes[stateAt{status.StateRevision, status.StateHash}] += " " + cluster.Name(i)
	}
	return hashes, nil
}

func sameRevision(hashes map[stateAt]string) bool {
	revisions := map[uint64]bool{}
	for at := range hashes {
		revisions[at.revision] = true
	}
	return len(revisions) == 1
}
