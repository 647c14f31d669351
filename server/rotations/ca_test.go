package rotations

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/setpoint-io/setpoint/internal/rotation"
	"github.com/setpoint-io/setpoint/internal/trust"
)

// TestTheDroppedAuthorityReadsNothing: whoever is waited for beside the members holds each phase up, and before the old authority is dropped
// the states of all kinds are sealed with the new one.
func TestTheDroppedAuthorityReadsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		keyPEM, err := w.ca.KeyPEM()
		if err != nil {
			t.Fatal(err)
		}
		old, err := trust.ParseCA(w.ca.CertPEM(), keyPEM)
		if err != nil {
			t.Fatal(err)
		}
		var waits atomic.Pointer[[]rotation.Waiting]
		waits.Store(&[]rotation.Waiting{{Member: "node n1", Why: "it is away"}})
		config := w.servers["a"].config
		config.Servers = func() []trust.Server { return []trust.Server{{Name: "a"}} }
		config.Mechanisms = map[rotation.Kind]Mechanism{
			rotation.AccountKey: KeyRing{Ring: &keys{ids: []string{"first"}}, Make: newKey},
			rotation.CA: KeyRing{
				Ring: w.ca.Ring(), WasDropped: w.ca.Dropped, Make: func() ([]byte, string, error) { return trust.MakeAuthority(time.Now()) },
			},
		}
		config.Authorities = &Authorities{
			Nodes: func() ([]rotation.Lacking, []string) { return nil, nil },
			Waits: func(context.Context, rotation.State, []rotation.Member) []rotation.Waiting { return *waits.Load() },
		}
		r := New(config)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go r.Run(ctx)
		go func() { _ = r.Lead(ctx) }()
		carry := func(kind rotation.Kind, order string, keep *metav1.Duration) rotation.Progress {
			t.Helper()
			p, err := r.Carry(ctx, Order{Kind: kind, Order: order, KeepOld: keep})
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Second)
			synctest.Wait()
			return p
		}
		read := func(ca *trust.CA) (phases []rotation.Phase) {
			t.Helper()
			list, err := w.client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, rotation.ConfigMapName, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for _, kind := range []rotation.Kind{rotation.AccountKey, rotation.CA} {
				state, _, err := rotation.Read(trust.Locker{CA: ca}, kind, list.Data[string(kind)])
				if err == nil {
					phases = append(phases, state.Phase)
				}
			}
			return phases
		}
		carry(rotation.AccountKey, Begin, &metav1.Duration{})
		carry(rotation.CA, Begin, &metav1.Duration{Duration: time.Minute})
		time.Sleep(time.Hour)
		if p := carry(rotation.CA, Status, nil); p.Phase != rotation.Trust || !strings.HasSuffix(p.Line(), "; it waits for node n1: it is away") {
			t.Errorf("told: %s", p.Line())
		}
		waits.Store(&[]rotation.Waiting{})
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if p := carry(rotation.CA, Status, nil); p.Phase != rotation.Use || w.ca.Pin() == old.Pin() || !w.ca.Holds(old.Pin()) {
			t.Errorf("told: %s", p.Line())
		}
		if phases := read(w.ca); len(phases) != 2 {
			t.Errorf("in the phase use it reads %v", phases)
		}
		backup, err := w.client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, rotation.ConfigMapName, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		waits.Store(&[]rotation.Waiting{{Member: "node n1", Why: "it is away"}})
		time.Sleep(time.Hour)
		if p := carry(rotation.CA, Status, nil); p.Phase != rotation.Use || len(p.Waits) != 1 {
			t.Errorf("told: %s", p.Line())
		}
		waits.Store(&[]rotation.Waiting{})
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if p := carry(rotation.CA, Status, nil); p.Phase != rotation.Done || w.ca.Holds(old.Pin()) {
			t.Errorf("told: %s", p.Line())
		}
		if phases := read(w.ca); len(phases) != 2 || phases[0] != rotation.Done || phases[1] != rotation.Done {
			t.Errorf("it reads %v", phases)
		}
		if phases := read(old); len(phases) != 0 {
			t.Errorf("the dropped one reads %v", phases)
		}
		// Between a look at what is stored and the answer, this server may go on and drop the old one.
		first := true
		w.client.(*fake.Clientset).PrependReactor("get", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
			outdated := first
			first = false
			return outdated, backup, nil
		})
		if p := carry(rotation.CA, Status, nil); p.Phase != rotation.Done || first {
			t.Errorf("told of what was stored a moment before: %s", p.Line())
		}
		if p := carry(rotation.AccountKey, Begin, &metav1.Duration{}); p.Generation != 2 {
			t.Errorf("another one: %s", p.Line())
		}

		// What the new one had sealed while the old one was believed is restored: it makes nobody believe that again.
		list, err := w.client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, rotation.ConfigMapName, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		list.Data[string(rotation.CA)] = backup.Data[string(rotation.CA)]
		if _, err := w.client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Update(ctx, list, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if phases := read(w.ca); len(phases) != 2 || phases[1] != rotation.Use || w.ca.Holds(old.Pin()) {
			t.Errorf("a backup of %v: the dropped one is believed: %t", phases, w.ca.Holds(old.Pin()))
		}
		if _, err := r.Carry(ctx, Order{Kind: rotation.CA, Order: Status}); !errors.Is(err, ErrDropped) {
			t.Errorf("told: %v", err)
		}
		used := w.ca.Pin()
		if p := carry(rotation.CA, Begin, &metav1.Duration{}); p.From != used {
			t.Errorf("another one after the backup: %s", p.Line())
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if p := carry(rotation.CA, Status, nil); p.Phase != rotation.Done || w.ca.Holds(used) || w.ca.Holds(old.Pin()) {
			t.Errorf("another one after the backup: %s", p.Line())
		}
	})
}
