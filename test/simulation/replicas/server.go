package replicas

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/setpoint-io/setpoint/raftstore"
	"github.com/setpoint-io/setpoint/raftstore/raftstoretest"
	"github.com/setpoint-io/setpoint/raftstore/replica"
)

const (
	// syncTime and voteTime are how long a quiet disk takes for entries, and for a term or a vote.
	syncTime, voteTime = 700 * time.Microsecond, 4 * time.Millisecond
	// snapshotTime is the longest that the end of a snapshot takes.
	snapshotTime = 800 * time.Millisecond
	// snapshotBytes is small, so that snapshots are taken and sent.
	snapshotBytes = 24 << 10
	// startAgain is after how long a server is started again whose disk failed meanwhile.
	startAgain = 300 * time.Millisecond
	// ringSmall is small, so that watches are overtaken; with ringLarge the judge sees everything that happens.
	ringSmall, ringLarge = 48 << 10, 8 << 20
)

// server is one whole server: the product's store with raft inside, on a disk and a network of the world.
type server struct {
	world *World
	name  string
	disk  *replica.Memory
	files *files
	trust raftstoretest.TrustFolder
	// founder: it is in the list that all are given.
	founder bool
	// upgraded is from when on its starts are of the present release, before of the one below.
	upgraded time.Time

	mu    sync.Mutex
	store *raftstore.Store
	web   *http.Server
	calls *http.Transport
	// fatal is why it stopped itself.
	fatal error
	// busy: it is being started or stopped; away: it is no member, and does not run.
	busy, away bool
	// harmed: its disk was made to fail in this life.
	harmed bool
	// kept is the last entry that its log had to keep when the power was cut.
	kept uint64
	// lives counts its starts.
	lives int
	// down is since when it does not run.
	down time.Time
}

// slowDown sets how long the disk takes for each write.
func (s *server) slowDown(d time.Duration) {
	s.files.setDelay(d)
	s.disk.SetSyncDelay(d)
}

func (w *World) addServer(name string, founder bool) *server {
	disk := replica.NewMemory()
	disk.SyncDelay, disk.StableDelay, disk.SnapshotDelay = syncTime, voteTime, w.spread(snapshotTime)
	kept := newFiles(filepath.Join(w.plan.Dir, name), w.plan.Seed)
	disk.Files = kept
	s := &server{world: w, name: name, founder: founder, disk: disk, files: kept, away: !founder}
	s.upgraded = w.began.Add(w.spread(w.plan.Length))
	w.servers = append(w.servers, s)
	return s
}

// running is the store while it runs.
func (s *server) running() *raftstore.Store {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.store
}

// begin marks the server as busy, and reports whether it was idle and in the wanted state.
func (s *server) begin(up bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy || up != (s.store != nil) {
		return false
	}
	s.busy = true
	return true
}

func (s *server) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy = false
}

// ended reports whether the server does not run, and nothing of its end is under way.
func (s *server) ended() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.store == nil && !s.busy
}

func (s *server) config() raftstore.Config {
	w := s.world
	s.calls = &http.Transport{DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
		to, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		return w.network.dial(ctx, s.name, to, "http")
	}}
	client := &http.Client{Transport: s.calls}
	cfg := raftstore.Config{
		Name: s.name, AdvertiseAddress: s.name, Disk: replica.MemoryDisk{Memory: s.disk}, ClusterID: "simulated", Founded: &s.trust,
		Logger: slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelInfo})).With("at", s.name),
		Dial: func(ctx context.Context, address, to string) (net.Conn, error) {
			if address != to {
				return nil, fmt.Errorf("%s is not at %s", to, address)
			}
			return w.network.dial(ctx, s.name, to, "raft")
		},
		HTTPClient:    func(_, address string) (*http.Client, string) { return client, "http://" + address },
		AuthorizePeer: func(*http.Request) error { return nil },
		Fatal:         s.failed, RingBytes: w.ringBytes(), FeatureLevel: s.level(), ObjectsLimitBytes: -1,
		Timing: raftstore.Timing{SnapshotBytes: snapshotBytes},
	}
	for _, other := range w.servers {
		if other.founder {
			cfg.InitialServers = append(cfg.InitialServers, raftstore.Server{ID: other.name, Address: other.name})
		}
	}
	return cfg
}

// level is that of the release which it is started with: one before logs were in segments, to which it moves then.
func (s *server) level() uint64 {
	if time.Now().Before(s.upgraded) {
		return replica.SegmentsLevel - 1
	}
	return raftstore.FeatureLevel
}

// ringBytes are small in every other seed.
func (w *World) ringBytes() int64 {
	if w.plan.Seed%2 == 1 {
		return ringSmall
	}
	return ringLarge
}

func (s *server) isAway() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.away
}

func (s *server) setAway(away bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = away
}

func (s *server) setHarmed(harmed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.harmed = harmed
}

// harm makes the disk fail with an error, nil ends that; the server may stop itself then.
func (s *server) harm(err error) {
	s.mu.Lock()
	s.harmed = s.harmed || err != nil
	s.mu.Unlock()
	s.files.fail(err)
}

func (s *server) failed(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fatal == nil && !errors.Is(err, replica.ErrCrashed) {
		s.fatal = err
		s.world.note("fatal %s %v", s.name, err)
	}
}

// stopped is why the server stopped itself, nil if it did not.
func (s *server) stopped() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fatal
}

// start opens the server; the caller has begun.
func (s *server) start() {
	defer s.end()
	cfg := s.config()
	store, err := raftstore.Open(s.world.ctx, cfg)
	switch {
	case errors.Is(err, syscall.EIO), errors.Is(err, syscall.ENOSPC), errors.Is(err, replica.ErrCrashed): // a failing disk
		s.world.note("%s cannot start yet: %v", s.name, err)
		s.world.nemesis.comeBack(s, startAgain)
		return
	case err != nil && s.world.ctx.Err() == nil:
		s.world.judge.fail("%s does not start: %v", s.name, err)
		return
	case err != nil:
		return
	}
	s.judgeStart(store)
	mux := http.NewServeMux()
	mux.Handle(store.Handler())
	l := newListener()
	s.mu.Lock()
	s.store, s.fatal, s.harmed = store, nil, s.files.fails()
	s.web = &http.Server{Handler: mux}
	s.lives++
	web := s.web
	s.mu.Unlock()
	go web.Serve(l)
	s.world.network.listen(s.name, "http", l.serve)
	s.world.network.listen(s.name, "raft", store.HandleRaftConn)
}

// wipe empties the disk of a server that is down.
func (s *server) wipe() {
	s.disk.Wipe()
	s.kept = 0
}

// judgeStart checks that a power cut has taken nothing that was on the disk, and has damaged nothing.
func (s *server) judgeStart(store *raftstore.Store) {
	l := entriesOf(s.disk.Look(true))
	if reach := max(l.last, l.snapshot); reach < s.kept {
		s.world.judge.fail("%s finds its log up to %d, and had stored it up to %d", s.name, reach, s.kept)
	}
	if phase := store.Status().Phase; phase == replica.Damaged {
		s.world.judge.fail("%s finds its data damaged after a power cut", s.name)
	}
	s.kept = 0
}

// halt ends the server, in order or by a power cut; the caller has begun.
func (s *server) halt(crash bool) {
	defer s.end()
	if crash {
		s.kept = s.disk.Look(true).Kept
		if err := s.files.cut(); err != nil {
			s.world.judge.fail("cutting the power of %s: %v", s.name, err)
		}
		s.disk.Crash()
		s.world.network.unplug(s.name)
	}
	s.mu.Lock()
	store, web := s.store, s.web
	s.store, s.down = nil, time.Now()
	s.mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if crash {
		cancel()
	}
	if err := store.Shutdown(ctx); err != nil && !crash && s.stopped() == nil {
		s.world.note("stopping %s: %v", s.name, err)
	}
	s.world.network.unplug(s.name)
	web.Close()
	s.calls.CloseIdleConnections()
}
