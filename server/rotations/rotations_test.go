package rotations

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"

	"github.com/setpoint-io/setpoint/apiserver/kinds"
	"github.com/setpoint-io/setpoint/apiserver/storage"
	"github.com/setpoint-io/setpoint/internal/rotation"
	"github.com/setpoint-io/setpoint/internal/trust"
	"github.com/setpoint-io/setpoint/raftstore/raftstoretest"
	"github.com/setpoint-io/setpoint/raftstore/state"
)

var configMaps = corev1.SchemeGroupVersion.WithResource("configmaps")

// keys are a Ring in memory, of which a text is its own id.
type keys struct {
	sync.Mutex
	ids  []string
	made atomic.Int32
	full error // why nothing can be added
	held error // why nothing can be dropped
}

func (k *keys) Add(text []byte) (string, error) {
	k.Lock()
	defer k.Unlock()
	if k.full == nil && !slices.Contains(k.ids, string(text)) {
		k.ids = append(k.ids, string(text))
	}
	return string(text), k.full
}

func (k *keys) Use(id string) error {
	k.Lock()
	defer k.Unlock()
	if !slices.Contains(k.ids, id) {
		return errors.New("it is not there")
	}
	k.ids = append([]string{id}, slices.DeleteFunc(k.ids, func(other string) bool { return other == id })...)
	return nil
}

func (k *keys) Drop(id string) error {
	k.Lock()
	defer k.Unlock()
	if k.ids[0] == id {
		return errors.New("it is in use")
	}
	if k.held == nil {
		k.ids = slices.DeleteFunc(k.ids, func(other string) bool { return other == id })
	}
	return k.held
}

func (k *keys) Text(id string) ([]byte, error) {
	if !slices.Contains(k.IDs(), id) {
		return nil, errors.New("it is not there")
	}
	return []byte(id), nil
}

func (k *keys) IDs() []string {
	k.Lock()
	defer k.Unlock()
	return slices.Clone(k.ids)
}

// set changes what is there, or what cannot be done.
func (k *keys) set(change func()) {
	k.Lock()
	defer k.Unlock()
	change()
}

// world is a cluster of three servers over one store.
type world struct {
	*testing.T
	store   *storage.Store
	client  kubernetes.Interface
	ca      *trust.CA
	life    string
	servers map[string]*server
	mu      sync.Mutex // of what servers are
}

// server is one of them. Away: it answers nobody; old: its release rotates nothing.
type server struct {
	*Rotations
	keys      *keys
	away, old bool
	stop      context.CancelFunc
}

func newWorld(t *testing.T) *world {
	ca, err := trust.NewCA(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{
		T: t, store: storage.New(raftstoretest.NewLocal(state.Options{}), kinds.NewScheme(), kinds.All()), ca: ca,
		servers: map[string]*server{},
	}
	w.client = w.newClient()
	for _, name := range []string{"a", "b", "c"} {
		w.servers[name] = &server{keys: &keys{ids: []string{"first"}}}
		w.start(name)
	}
	return w
}

// newClient is a client of the store.
func (w *world) newClient() kubernetes.Interface {
	client, table := fake.NewClientset(), w.store.Table(configMaps)
	client.PrependReactor("*", "configmaps", func(action clienttesting.Action) (bool, runtime.Object, error) {
		write, ok := action.(interface{ GetObject() runtime.Object })
		if !ok {
			found, err := table.Get(w.Context(), metav1.NamespaceSystem, rotation.ConfigMapName, "")
			if err != nil {
				return true, nil, err
			}
			return true, found.Copy(), nil
		}
		object, err := table.Write(w.Context(), metav1.NamespaceSystem, rotation.ConfigMapName, func(*storage.View) (*storage.Change, error) {
			return &storage.Change{Object: write.GetObject().DeepCopyObject().(*corev1.ConfigMap)}, nil
		})
		return true, object, err
	})
	return client
}

// start begins a server anew, with the keys that it had.
func (w *world) start(name string) {
	s := w.servers[name]
	ctx, stop := context.WithCancel(w.Context())
	config := Config{
		Name: name, Life: func() string { return w.life }, Storage: w.store, Client: w.client, Locker: trust.Locker{CA: w.ca}, Clock: clock.RealClock{}, Logger: slog.New(slog.NewTextHandler(w.Output(), nil)),
		Servers: func() []trust.Server { return []trust.Server{{Name: "c"}, {Name: "a"}, {Name: "b"}} },
		Ask: func(_ context.Context, other trust.Server) ([]rotation.Held, error) {
			w.mu.Lock()
			asked := *w.servers[other.Name]
			w.mu.Unlock()
			if asked.away {
				return nil, errors.New("refused")
			}
			return asked.Held(), nil
		},
		Mechanisms: map[rotation.Kind]Mechanism{rotation.AccountKey: KeyRing{Ring: s.keys, Make: func() ([]byte, string, error) {
			id := fmt.Sprintf("made-%d-by-%s", s.keys.made.Add(1), name)
			return []byte(id), id, nil
		}}},
	}
	if s.old {
		config.Mechanisms = nil
	}
	rotations := New(config)
	w.mu.Lock()
	s.Rotations, s.away, s.stop = rotations, false, stop
	w.mu.Unlock()
	go rotations.Run(ctx)
	w.Cleanup(stop)
}

// kill ends a server.
func (w *world) kill(name string) {
	w.servers[name].stop()
	synctest.Wait() // it takes nothing in any more
	w.mu.Lock()
	defer w.mu.Unlock()
	w.servers[name].away = true
}

// lead makes a server lead until the function that is returned is called.
func (w *world) lead(name string) (end func()) {
	ctx, cancel := context.WithCancel(w.Context())
	ended, leader := make(chan struct{}), w.servers[name].Rotations
	go func() {
		defer close(ended)
		_ = leader.Lead(ctx)
	}()
	return func() { cancel(); <-ended }
}

func (w *world) order(by, order string, keep time.Duration) rotation.Progress {
	w.Helper()
	o := Order{Kind: rotation.AccountKey, Order: order}
	if order == Begin {
		o.KeepOld = &metav1.Duration{Duration: keep}
	}
	progress, err := w.servers[by].Carry(w.Context(), o)
	if err != nil {
		w.Fatalf("%s: %v", order, err)
	}
	return progress
}

// after is the phase, and which keys each server has, after some time.
func (w *world) after(pass time.Duration, phase rotation.Phase, want string) {
	w.Helper()
	time.Sleep(pass)
	synctest.Wait()
	var all []string
	for _, name := range []string{"a", "b", "c"} {
		all = append(all, strings.Join(w.servers[name].keys.IDs(), "+"))
	}
	if got := strings.Join(slices.Compact(all), " "); got != want {
		w.Errorf("%s: the servers have %s, want %s", phase, got, want)
	}
	if progress := w.order("a", Status, 0); progress.Phase != phase {
		w.Errorf("phase %s, want %s: %s", progress.Phase, phase, progress.Line())
	}
}

// TestARotation: begun, asked twice, held up by who is away in each phase, whose leader dies in each, kept, and done.
func TestARotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.kill("c")
		end := w.lead("a")
		if p := w.order("b", Begin, time.Hour); !p.Changed || p.Phase != rotation.Trust {
			t.Errorf("begun: %+v", p)
		}
		w.after(time.Minute, rotation.Trust, "first+made-1-by-b first")
		if p := w.order("a", Begin, time.Hour); p.Changed || len(p.Waits) != 1 || p.Waits[0].Member != "c" {
			t.Errorf("asked twice: %+v", p)
		}
		end()
		end = w.lead("b")
		w.start("c")
		w.after(59*time.Minute, rotation.Trust, "first+made-1-by-b") // from when c trusts it
		w.after(2*time.Minute, rotation.Use, "made-1-by-b+first")
		end()
		w.kill("a")
		end = w.lead("c")
		w.after(50*time.Minute, rotation.Use, "made-1-by-b+first")
		w.after(20*time.Minute, rotation.Use, "made-1-by-b+first") // a is away
		w.start("a")
		w.after(3*time.Second, rotation.Done, "made-1-by-b")
		end()
		// Later a server comes with the folder of former days.
		w.kill("b")
		b := w.servers["b"].keys
		b.set(func() { b.ids = []string{"first"} })
		if held := New(w.servers["b"].config).Held(); held[0].Uses != "first" || held[0].Generation != 0 {
			t.Errorf("it follows before it has caught up: %+v", held)
		}
		w.start("b")
		w.after(0, rotation.Done, "made-1-by-b")
	})
}

// TestARestoredBackup: a phase that was held long ago, before the backup was restored, lasts its whole time once more.
func TestARestoredBackup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		end := w.lead("a")
		w.order("a", Begin, time.Hour)
		w.after(10*time.Minute, rotation.Trust, "first+made-1-by-a")
		end()
		for _, name := range []string{"a", "b", "c"} {
			w.kill(name)
		}
		time.Sleep(30 * 24 * time.Hour)
		w.life = "restored"
		for _, name := range []string{"a", "b", "c"} {
			w.start(name)
		}
		defer w.lead("b")()
		w.after(59*time.Minute, rotation.Trust, "first+made-1-by-a")
		w.after(59*time.Minute, rotation.Use, "made-1-by-a+first")
		w.after(3*time.Minute, rotation.Done, "made-1-by-a")
	})
}

// TestARestoredFirstRotation: a backup of the first rotation, or of after its abort, has the key of the beginning for servers that have
// dropped it since.
func TestARestoredFirstRotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		restore := func() {
			for _, name := range []string{"a", "b", "c"} {
				w.kill(name)
				k := w.servers[name].keys
				k.set(func() { k.ids = []string{"later"} })
				w.start(name)
			}
		}
		defer w.lead("a")()
		w.order("a", Begin, time.Hour)
		w.after(time.Minute, rotation.Trust, "first+made-1-by-a")
		restore()
		w.after(time.Minute, rotation.Trust, "first+made-1-by-a")
		w.order("a", Abort, 0)
		w.after(2*time.Second, rotation.Drop, "first")
		defer w.lead("a")()
		w.after(2*time.Second, rotation.Done, "first")
		restore()
		w.after(time.Minute, rotation.Done, "first")
		w.order("a", Begin, 0)
		defer w.lead("a")()
		w.after(10*time.Second, rotation.Done, "made-2-by-a")
	})
}

// TestAnOrderThatIsStoredIsCarriedOut, also if nobody can say which nodes are away.
func TestAnOrderThatIsStoredIsCarriedOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		config := w.servers["a"].config
		config.Mechanisms = map[rotation.Kind]Mechanism{rotation.GossipKey: KeyRing{Ring: &keys{ids: []string{"first"}}, Make: newKey}}
		config.Servers = func() []trust.Server { return []trust.Server{{Name: "a"}} }
		config.Nodes = &Nodes{
			Lacking: func() []rotation.Lacking { return nil },
			Away:    func(context.Context) ([]string, error) { return nil, errors.New("no quorum") },
		}
		r := New(config)
		if p, err := r.Carry(t.Context(), Order{Kind: rotation.GossipKey, Order: Begin}); err != nil || !p.Changed {
			t.Errorf("begun: %v, %+v", err, p)
		}
		if _, err := r.Carry(t.Context(), Order{Kind: rotation.GossipKey, Order: Status}); err == nil {
			t.Error("who is away is unknown, and the status says that nobody is")
		}
	})
}

func newKey() (text []byte, id string, err error) { return []byte("fresh"), "fresh", nil }

// TestKeysOfGossipWaitForRevocations: at the start and later, nothing is followed that nodes are handed before this server knows of who was
// shut out; other kinds go on.
func TestKeysOfGossipWaitForRevocations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var behind atomic.Bool
		var account, gossip *keys
		config := w.servers["a"].config
		config.CaughtUp = func(context.Context) error {
			if behind.Load() {
				return errors.New("not yet")
			}
			return nil
		}
		config.Servers = func() []trust.Server { return []trust.Server{{Name: "a"}} }
		start := func() *Rotations {
			account, gossip = &keys{ids: []string{"first"}}, &keys{ids: []string{"first"}}
			config.Mechanisms = map[rotation.Kind]Mechanism{
				rotation.AccountKey: KeyRing{Ring: account, Make: newKey}, rotation.GossipKey: KeyRing{Ring: gossip, Make: newKey},
			}
			r := New(config)
			go r.Run(w.Context())
			time.Sleep(lookInterval)
			synctest.Wait()
			return r
		}
		check := func(when string, want int) {
			t.Helper()
			time.Sleep(2 * lookInterval)
			synctest.Wait()
			if len(account.IDs()) != 2 || len(gossip.IDs()) != want {
				t.Errorf("%s: it holds %v and of gossip %v, want %d", when, account.IDs(), gossip.IDs(), want)
			}
		}
		r := start()
		behind.Store(true)
		for _, kind := range []rotation.Kind{rotation.AccountKey, rotation.GossipKey} {
			if _, err := r.Carry(t.Context(), Order{Kind: kind, Order: Begin}); err != nil {
				t.Fatal(err)
			}
		}
		check("later", 1)
		if r = start(); r.Begun() {
			t.Error("it has begun")
		}
		check("at the start", 1)
		behind.Store(false)
		check("then", 2)
		if !r.Begun() {
			t.Error("it has not begun")
		}
	})
}

// TestAbort: the way back is free until the old one is dropped.
func TestAbort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.lead("a")()
		w.kill("c")
		w.order("a", Begin, time.Hour)
		w.after(time.Minute, rotation.Trust, "first+made-1-by-a first")
		w.order("a", Abort, 0)
		w.after(time.Minute, rotation.Drop, "first")
		if _, err := w.servers["b"].Carry(t.Context(), Order{Kind: rotation.AccountKey, Order: Abort}); err != nil {
			t.Errorf("aborted twice: %v", err)
		}
		w.start("c")
		w.after(2*time.Second, rotation.Done, "first")
		w.order("a", Begin, time.Hour)
		w.after(time.Hour+time.Second, rotation.Use, "made-2-by-a+first")
		w.order("c", Abort, 0)
		w.after(time.Minute, rotation.Use, "first+made-2-by-a")
		w.after(time.Hour, rotation.Done, "first")
		if _, err := w.servers["a"].Carry(t.Context(), Order{Kind: rotation.AccountKey, Order: Abort}); !errors.Is(err, rotation.ErrNothing) {
			t.Errorf("aborted when it is over: %v", err)
		}
	})
}

// TestTooLate: a server that cannot is named and goes on by itself, and whoever aborts when the old one is dropped is refused.
func TestTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		b := w.servers["b"].keys
		b.set(func() { b.full, b.held = errors.New("its disk is full"), errors.New("its folder cannot be written") })
		w.order("a", Begin, 0)
		defer w.lead("a")()
		w.after(3*time.Second, rotation.Trust, "first+made-1-by-a first first+made-1-by-a")
		if p := w.order("a", Status, 0); !strings.HasSuffix(p.Line(), "; it waits for b: its disk is full") {
			t.Errorf("told: %s", p.Line())
		}
		b.set(func() { b.full = nil })
		w.after(retryInterval, rotation.Drop, "made-1-by-a made-1-by-a+first made-1-by-a")
		if p := w.order("a", Status, 0); !strings.HasSuffix(p.Line(), "; it waits for b: its folder cannot be written") {
			t.Errorf("told: %s", p.Line())
		}
		if _, err := w.servers["b"].Carry(t.Context(), Order{Kind: rotation.AccountKey, Order: Abort}); !errors.Is(err, rotation.ErrTooLate) {
			t.Errorf("aborted while it is dropped: %v", err)
		}
		b.set(func() { b.held = nil })
		w.after(retryInterval, rotation.Done, "made-1-by-a")
	})
}

// TestWhoCannotFollow: a rotation is refused while a member is too old, whatever is no order, and what was not sealed by a server is left alone.
func TestWhoCannotFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.kill("c")
		w.servers["c"].old = true
		w.start("c")
		for _, c := range []struct {
			order Order
			want  error
		}{
			{Order{Kind: rotation.AccountKey, Order: Begin}, rotation.ErrTooOld},
			{Order{Kind: rotation.AccountKey, Order: "x"}, ErrOrder},
			{Order{Kind: rotation.EncryptionKey, Order: Begin}, rotation.ErrNotBuilt},
			{Order{Kind: rotation.Serving, Order: Begin}, rotation.ErrNotBuilt}, // these servers have no certificates
			{Order{Kind: "x", Order: Status}, rotation.ErrKind},
		} {
			if _, err := w.servers["a"].Carry(t.Context(), c.order); !errors.Is(err, c.want) {
				t.Errorf("%+v: %v", c.order, err)
			}
		}
		other, err := trust.NewCA(time.Now())
		if err != nil {
			t.Fatal(err)
		}
		foreign := rotation.State{Kind: rotation.AccountKey, Generation: 9, Phase: rotation.Drop, To: "x"}
		text, err := foreign.Text(trust.Locker{CA: other}, rotation.Keys{"x": []byte("x")})
		if err != nil {
			t.Fatal(err)
		}
		list := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: rotation.ConfigMapName}}
		list.Data = map[string]string{string(rotation.AccountKey): text}
		if _, err := w.client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Create(t.Context(), list, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		defer w.lead("a")()
		time.Sleep(time.Minute)
		synctest.Wait()
		if ids := w.servers["a"].keys.IDs(); !slices.Equal(ids, []string{"first"}) {
			t.Errorf("it follows another cluster: %q", ids)
		}
		if _, err := w.servers["a"].Carry(t.Context(), Order{Kind: rotation.AccountKey, Order: Status}); !errors.Is(err, trust.ErrLocked) {
			t.Errorf("the status: %v", err)
		}
		later := rotation.State{Kind: rotation.AccountKey, Generation: 9, Phase: "later", To: "x"}
		if text, err = later.Text(trust.Locker{CA: w.ca}, nil); err != nil {
			t.Fatal(err)
		}
		if _, _, err := w.servers["a"].read(Order{Kind: rotation.AccountKey, Order: Begin}, text); err == nil {
			t.Error("a rotation of a later release is overwritten")
		}
		if _, _, err := w.servers["a"].read(Order{Kind: rotation.AccountKey, Order: Begin}, list.Data[string(rotation.AccountKey)]); err != nil {
			t.Errorf("one of another cluster: %v", err)
		}
	})
}

// TestAFullRing: keys that nobody wants make room, and never the one in use.
func TestAFullRing(t *testing.T) {
	cluster, err := trust.NewCluster(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	ring := KeyRing{Ring: cluster.AccountKeys, Make: trust.MakeAccountKey}
	for range 3 {
		text, _, err := ring.New()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ring.Ring.Add(text); err != nil {
			t.Fatal(err)
		}
	}
	text, fresh, err := ring.New()
	if err != nil {
		t.Fatal(err)
	}
	used, _ := ring.Held()
	s := rotation.State{Kind: rotation.AccountKey, Phase: rotation.Trust, From: used, To: fresh}
	if err := ring.Follow(s, rotation.Keys{fresh: text}); err != nil {
		t.Fatal(err)
	}
	if _, trusts := ring.Held(); !slices.Equal(trusts, []string{used, fresh}) {
		t.Errorf("it has %q, want %q and %q", trusts, used, fresh)
	}
}

// TestCertificates: each order renews once, and one that was followed before the process began does not.
func TestCertificates(t *testing.T) {
	issued, renewals := time.Unix(1000, 0), 0
	newOne := func(clock time.Time) *Certificates {
		return &Certificates{
			Issued: func() time.Time { return issued }, Now: func() time.Time { return clock },
			Renew: func(now time.Time) error { issued, renewals = now, renewals+1; return nil },
		}
	}
	c := newOne(time.Unix(1800, 0)) // its clock is behind
	order := rotation.State{Kind: rotation.Serving, Phase: rotation.Use, To: time.Unix(2000, 0).UTC().Format(issuedFormat)}
	follow := func(s rotation.State, want int) {
		t.Helper()
		if err := c.Follow(s, nil); err != nil {
			t.Fatal(err)
		}
		if uses, _ := c.Held(); uses != s.To || renewals != want {
			t.Errorf("%d renewals, want %d; it says %q", renewals, want, uses)
		}
	}
	follow(order, 1)
	follow(order, 1)
	_, to, err := newOne(time.Unix(3000, 0)).New()
	if err != nil {
		t.Fatal(err)
	}
	order.To = to
	c = newOne(time.Unix(3001, 0))
	follow(order, 2)
	c = newOne(time.Unix(3002, 0)) // it started again
	follow(order, 2)
	order.To, order.Phase = time.Unix(9000, 0).UTC().Format(issuedFormat), rotation.Done
	follow(order, 2)
}

// TestNodesHoldUpARotation: of the keys of gossip, until they say that they hold them; nodes that are away are told of. The pool has the keys
// of the ring after each step.
func TestNodesHoldUpARotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		cluster, err := trust.NewCluster(time.Now())
		if err != nil {
			t.Fatal(err)
		}
		var pool atomic.Pointer[[]string]
		var caughtUp atomic.Bool
		var lacking atomic.Pointer[[]rotation.Lacking]
		lacking.Store(&[]rotation.Lacking{{Node: "n1"}})
		config := w.servers["a"].config
		config.Name, config.Servers = "a", func() []trust.Server { return []trust.Server{{Name: "a"}} }
		config.CaughtUp = func(context.Context) error {
			if caughtUp.Load() {
				return nil
			}
			return errors.New("not yet")
		}
		config.Mechanisms = map[rotation.Kind]Mechanism{rotation.GossipKey: KeyRing{
			Ring: cluster.GossipKeys, Make: trust.MakeGossipKey,
			Changed: func() error { pool.Store(new(cluster.GossipKeys.IDs())); return nil },
		}}
		config.Nodes = &Nodes{
			Lacking: func() []rotation.Lacking { return *lacking.Load() },
			Away:    func(context.Context) ([]string, error) { return []string{"n9"}, nil },
		}
		r := New(config)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go r.Run(ctx)
		synctest.Wait()
		if r.Begun() {
			t.Error("it begins before all else is as new")
		}
		caughtUp.Store(true)
		time.Sleep(lookInterval)
		synctest.Wait()
		if !r.Begun() {
			t.Error("it does not begin")
		}
		first := cluster.GossipKeys.Used().ID()
		if _, err := r.Carry(ctx, Order{Kind: rotation.GossipKey, Order: Begin}); err != nil {
			t.Fatal(err)
		}
		go func() { _ = r.Lead(ctx) }()
		time.Sleep(time.Hour)
		p, err := r.Carry(ctx, Order{Kind: rotation.GossipKey, Order: Status})
		if err != nil || p.Phase != rotation.Trust || len(p.Waits) != 1 || p.Waits[0].Member != "node n1" || !slices.Equal(p.Away, []string{"n9"}) {
			t.Errorf("%v: %s", err, p.Line())
		}
		if ids := *pool.Load(); len(ids) != 2 || ids[0] != first {
			t.Errorf("the pool has %v", ids)
		}
		lacking.Store(&[]rotation.Lacking{})
		time.Sleep(time.Minute)
		p, err = r.Carry(ctx, Order{Kind: rotation.GossipKey, Order: Status})
		if ids := *pool.Load(); err != nil || p.Phase != rotation.Done || len(p.Away) != 0 || len(ids) != 1 || ids[0] == first {
			t.Errorf("%v: %s; the pool has %v", err, p.Line(), ids)
		}
	})
}
