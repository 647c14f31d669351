package setpoint

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/setpoint-io/setpoint/internal/rotation"
	"github.com/setpoint-io/setpoint/server"
	"github.com/setpoint-io/setpoint/server/admin"
	"github.com/setpoint-io/setpoint/server/inprocess"
	"github.com/setpoint-io/setpoint/server/rotations"
)

// shortKept is how long old ones are kept here, which have to be kept for no longer: people and programs fetch what they need sooner.
const shortKept = 30 * time.Second

// point is a moment of a rotation: a phase begins, or, if held, the time that it lasts.
type point struct {
	phase rotation.Phase
	held  bool
}

func (p point) String() string { return fmt.Sprintf("%s, held %t", p.phase, p.held) }

// order is the place of a moment among all.
func (p point) order() int {
	at := 2 * slices.Index([]rotation.Phase{rotation.Trust, rotation.Use, rotation.Drop, rotation.Done}, p.phase)
	if p.held {
		at++
	}
	return at
}

func pointOf(s rotation.State) point { return point{s.Phase, s.HeldSince != nil} }

// lasts says of a moment that it is not over before anybody sees it.
func (p point) lasts() bool { return p.held || p.phase == rotation.Done }

// isMissed says that a moment was over, or never there, when a rotation was seen at another one.
func (p point) isMissed(reached rotation.State) bool { return p.lasts() && pointOf(reached) != p }

// pointsOf are those of a kind, in their order.
func pointsOf(kind rotation.Kind) []point {
	all := []point{{phase: rotation.Trust}, {rotation.Trust, true}, {phase: rotation.Use}, {rotation.Use, true}, {phase: rotation.Drop}, {phase: rotation.Done}}
	return slices.DeleteFunc(all, func(p point) bool {
		switch kind {
		case rotation.Serving:
			return p.held || p.phase == rotation.Trust || p.phase == rotation.Drop
		case rotation.AccountKey, rotation.FrontProxy:
			return false
		}
		return p.held && p.phase == rotation.Trust
	})
}

// turning is a cluster whose keys are replaced while everybody asks.
type turning struct {
	*years
	edge *edge
	// turns are as many as there were, hits those in which the wanted moment was seen itself.
	turns, hits int
	// isAborted says that the rotation of now was aborted.
	isAborted bool
}

// TestRotationsWithTheLeaderKilled: whatever is replaced, and in whichever phase the leader is killed or deposed, or a member is away, or
// the administrator changes his mind, no request fails, and at the end all members and the agent hold the same alone. In short there is one
// kill for each kind, in another phase each.
func TestRotationsWithTheLeaderKilled(t *testing.T) {
	if testing.Short() {
		inTurn(t, func(y *turning) {
			for i, kind := range rotation.Built() {
				points := pointsOf(kind)
				y.killedAt(kind, points[i%len(points)])
			}
		})
		return
	}
	for _, kind := range rotation.Built() {
		t.Run(string(kind), func(t *testing.T) {
			inTurn(t, func(y *turning) {
				for _, at := range pointsOf(kind) {
					y.killedAt(kind, at)
					y.deposedAt(kind, at)
					if at.phase != rotation.Done {
						y.awayAt(kind, at)
						y.abortedAt(kind, at)
					}
				}
			})
		})
	}
}

// inTurn does something with a new cluster under load, and fails if a request does.
func inTurn(t *testing.T, do func(y *turning)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		y := newYears(t)
		y.keptLater, y.tokensLast = 3*time.Second, 5*time.Second
		all := &turning{years: y, edge: y.newEdge()}
		ctx, stop := context.WithCancel(t.Context())
		var writing sync.WaitGroup
		writing.Go(func() { all.write(ctx) })
		t.Cleanup(func() { // of a test that fails
			stop()
			writing.Wait()
		})
		end := y.load(all.edge)
		do(all)
		stop()
		writing.Wait()
		end()
		t.Logf("%d of %d at the moment itself; %v: %d failed", all.hits, all.turns, y.requests, len(y.failed))
		if len(y.failed) > 0 {
			t.Error(strings.Join(y.failed[:min(20, len(y.failed))], "\n"))
		}
	})
}

// write creates, reads and deletes a Secret twice a second, as the administrator.
func (y *turning) write(ctx context.Context) {
	administrator := administrator{years: y.years}
	for i := 0; ctx.Err() == nil; i++ {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("s-", i)}, StringData: map[string]string{"a": "b"}}
		y.note("create", y.patiently(func() error {
			_, err := administrator.secrets().Create(y.Context(), secret, metav1.CreateOptions{})
			if apierrors.IsAlreadyExists(err) {
				return nil // its answer was lost
			}
			return err
		}))
		y.note("get", y.patiently(func() error {
			got, err := administrator.secrets().Get(y.Context(), secret.Name, metav1.GetOptions{})
			if err == nil && string(got.Data["a"]) != "b" {
				err = apierrors.NewConflict(corev1.Resource("secrets"), secret.Name, fmt.Errorf("it says %q", got.Data["a"]))
			}
			return err
		}))
		y.note("delete", y.patiently(func() error {
			err := administrator.secrets().Delete(y.Context(), secret.Name, metav1.DeleteOptions{})
			if apierrors.IsNotFound(err) {
				return nil
			}
			return err
		}))
		time.Sleep(lostPause)
	}
}

func (a *administrator) secrets() corev1client.SecretInterface {
	return a.client().CoreV1().Secrets("default")
}

// begin orders a rotation, with the shortest times.
func begin(kind rotation.Kind) rotations.Order {
	order := rotations.Order{Kind: kind, Order: rotations.Begin}
	if kind != rotation.Serving && kind != rotation.EncryptionKey {
		order.KeepOld = &metav1.Duration{Duration: shortKept}
	}
	return order
}

// carry has an order carried out, or not: the server that is asked may be killed.
func (y *turning) carry(order rotations.Order) {
	if config, err := y.c.RESTConfig(); err == nil {
		_, _ = admin.OrderRotation(y.Context(), config, order)
	}
}

// follow calls do with each state of a kind, as the leader sees it, until do is content.
func (y *turning) follow(kind rotation.Kind, do func(s rotation.State) bool) {
	y.Helper()
	until := time.Now().Add(time.Hour)
	for time.Now().Before(until) {
		if y.followLeader(kind, do) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	y.Fatalf("%s: waited in vain: %s", kind, y.order(kind, rotations.Status).Line())
}

// followLeader is follow for as long as the same server leads, and no longer than a minute.
func (y *turning) followLeader(kind rotation.Kind, do func(s rotation.State) bool) (content bool) {
	leader, up := y.leader(), y.c.replicas.up()
	at := slices.IndexFunc(up, func(s *server.Server) bool { return s.Status().Name == leader })
	if at < 0 {
		return false
	}
	client := kubernetes.NewForConfigOrDie(up[at].RESTConfig(inprocess.Server))
	w, err := client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Watch(y.Context(), metav1.ListOptions{
		FieldSelector: "metadata.name=" + rotation.ConfigMapName, TimeoutSeconds: new(int64(60)),
	})
	if err != nil {
		return false
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		if m, ok := event.Object.(*corev1.ConfigMap); ok && do(y.read(m, kind)) {
			return true
		}
	}
	return false
}

func (y *turning) read(m *corev1.ConfigMap, kind rotation.Kind) rotation.State {
	stored := struct {
		State rotation.State `json:"state"`
	}{}
	if text := m.Data[string(kind)]; text != "" {
		y.must(json.Unmarshal([]byte(text), &stored))
	}
	return stored.State
}

// turn begins a rotation, does something at a moment of it, and returns how it ends. What has no time to last is over sometimes before it is
// seen: then the moment is the next one.
func (y *turning) turn(kind rotation.Kind, at point, do func(s rotation.State)) {
	y.Helper()
	before := y.order(kind, rotations.Status).Generation
	var begun sync.WaitGroup
	defer begun.Wait()
	once := sync.OnceFunc(func() { begun.Go(func() { y.carry(begin(kind)) }) })
	var reached rotation.State
	if before == 0 {
		once() // there is nothing to see yet
	}
	y.follow(kind, func(s rotation.State) bool {
		once()
		reached = s
		return s.Generation > before && pointOf(s).order() >= at.order()
	})
	if pointOf(reached) == at {
		y.hits++
	}
	if at.isMissed(reached) {
		y.Errorf("%s: %s was missed: it was seen at %s", kind, at, pointOf(reached))
	}
	y.turns++
	do(reached)
	begun.Wait()
	var done rotation.State
	y.follow(kind, func(s rotation.State) bool {
		done = s
		return s.Generation >= reached.Generation && s.Phase == rotation.Done
	})
	y.ended(kind, at, reached, done)
	y.holdsAlone(done)
}

// ended judges how a rotation ended.
func (y *turning) ended(kind rotation.Kind, at point, reached, done rotation.State) {
	y.Helper()
	back := done.To == reached.From
	if done.Aborted != y.isAborted || kind != rotation.Serving && back != y.isAborted {
		y.Errorf("%s at %s: aborted: %t; it ends with %+v", kind, at, y.isAborted, done)
	}
	y.isAborted = false
}

// killedAt kills the leader at a moment of a rotation, and asks for the same once more.
func (y *turning) killedAt(kind rotation.Kind, at point) {
	y.Helper()
	y.turn(kind, at, func(s rotation.State) {
		back := y.crash(y.leader())
		time.Sleep(awayFor)
		if s.UnderWay() { // without one of the members it does not end
			if twice, err := y.tryOrder(begin(kind)); err != nil || twice.Generation != s.Generation || !twice.WasUnderWay {
				y.Errorf("%s at %s: asked twice: %s, %v", kind, at, twice.Line(), err)
			}
		}
		back()
	})
}

// deposedAt has another server lead at a moment of a rotation.
func (y *turning) deposedAt(kind rotation.Kind, at point) {
	y.Helper()
	y.turn(kind, at, func(rotation.State) {
		config, err := y.c.RESTConfig()
		y.must(err)
		y.must(y.patiently(func() error {
			return admin.OrderChange(y.Context(), config, admin.MembershipChange{Change: admin.ChangeTransfer})
		}))
	})
}

// awayAt kills a follower at a moment: the rotation waits for it, by its name.
func (y *turning) awayAt(kind rotation.Kind, at point) {
	y.Helper()
	y.turn(kind, at, func(s rotation.State) {
		leader := y.leader()
		follower := "server-1"
		if leader == follower {
			follower = "server-2"
		}
		back := y.crash(follower)
		time.Sleep(3 * time.Minute)
		told := y.order(kind, rotations.Status)
		if s.UnderWay() && (!strings.Contains(told.Line(), follower+": it does not answer") || told.Phase == rotation.Done) {
			y.Errorf("%s at %s, without %s: %s", kind, at, follower, told.Line())
		}
		back()
	})
}

// abortedAt goes back at a moment, and kills the leader then. When the old one is dropped it is too late.
func (y *turning) abortedAt(kind rotation.Kind, at point) {
	y.Helper()
	y.turn(kind, at, func(rotation.State) {
		told, err := y.tryOrder(rotations.Order{Kind: kind, Order: rotations.Abort})
		y.isAborted = err == nil
		if err != nil {
			told = y.order(kind, rotations.Status)
		}
		if !isTooLate(err, told.State) && (err != nil || !told.Aborted) {
			y.Errorf("%s at %s: aborted: %s, %v", kind, at, told.Line(), err)
		}
		y.killLeader()
	})
}

// isTooLate reports whether an abort was refused, and rightly: the old one is dropped by now, or there is nothing to abort any more.
func isTooLate(err error, now rotation.State) bool {
	switch {
	case err == nil:
		return false
	case strings.Contains(err.Error(), rotation.ErrTooLate.Error()):
		return pointOf(now).order() >= point{phase: rotation.Drop}.order()
	}
	return strings.Contains(err.Error(), rotation.ErrNothing.Error()) && now.Phase == rotation.Done
}

// holdsAlone waits until all servers, and the agent, hold what a rotation has ended with, and nothing else.
func (y *turning) holdsAlone(s rotation.State) {
	y.Helper()
	var held map[string][]string
	for range 60 {
		held = y.held(s.Kind)
		alone := true
		for _, ids := range held {
			alone = alone && slices.Equal(ids, []string{s.To})
		}
		if alone {
			return
		}
		time.Sleep(time.Second)
	}
	y.Errorf("%s: %s is not held alone: %v", s.Kind, s.To, held)
}

func (y *turning) held(kind rotation.Kind) map[string][]string {
	held := map[string][]string{}
	y.c.replicas.mu.RLock()
	defer y.c.replicas.mu.RUnlock()
	for _, one := range y.c.replicas.servers {
		switch trust := one.config.Trust; kind {
		case rotation.CA:
			held[one.config.Name] = trust.CA.Ring().IDs()
			held[edgeName] = y.edge.membership.AuthoritiesHeld()
		case rotation.AccountKey:
			held[one.config.Name] = trust.AccountKeys.IDs()
		case rotation.GossipKey:
			held[one.config.Name] = trust.GossipKeys.IDs()
			held[edgeName] = y.edge.ringHeld().IDs
		}
	}
	return held
}
