package setpoint

import (
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/setpoint-io/setpoint/internal/rotation"
	"github.com/setpoint-io/setpoint/internal/trust"
	"github.com/setpoint-io/setpoint/server/rotations"
)

const (
	day  = 24 * time.Hour
	year = 365 * day
	// stride is how far the clock jumps: less than a third of a certificate's life.
	stride = 90 * day
	// keptLater is less than the old authority is kept, tokensLast less than the old key of tokens: kubelets renew those of pods so.
	keptLater, tokensLast = 3 * day, 20 * time.Hour
)

// years is a cluster that becomes old, and what those who use it over TLS have seen of it.
type years struct {
	*testing.T
	patience
	c *Cluster
	// inside is the administrator without a connection: what the test itself asks.
	inside kubernetes.Interface
	// tokensLast is after which time programs have other tokens made, keptLater how long after the authorities changed people and programs
	// fetch what they need.
	tokensLast, keptLater time.Duration

	mu       sync.Mutex
	requests map[string]int
	// isTold: the status of a rotation has named a person who shows what the old authority has signed.
	isTold bool
	failed []string
}

// TestElevenYears of three servers and an agent, with a steady load over TLS. Nobody does anything but what the documentation says: people
// and programs renew what is theirs, and a person replaces the authorities when `cluster status` warns, and the other keys some day. Once a
// year the leader is killed. No request fails, no watch misses an event, and the agent's pod stays as it is.
func TestElevenYears(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYears(t)
		edge := y.newEdge()
		end := y.load(edge)
		first, began, passed := y.c.trust.Copied(), y.now(), 0
		for y.now().Before(began.Add(11 * year)) {
			y.jump(stride)
			if y.now().Sub(began) > time.Duration(passed+1)*year {
				passed++
				y.killLeader()
				if kind, ok := replacedIn[passed]; ok {
					y.rotate(kind)
				}
			}
			if y.c.trust.CA.Pin() == first.CA.Pin() && y.isWarned() {
				y.rotateAll(first)
			}
		}
		end()
		for _, who := range []string{"administrator", "person", "account", "agent"} {
			if y.requests[who] < 100 {
				t.Errorf("%s asked %d times", who, y.requests[who])
			}
		}
		t.Logf("%v: %d failed", y.requests, len(y.failed))
		if len(y.failed) > 0 {
			t.Error(strings.Join(y.failed[:min(20, len(y.failed))], "\n"))
		}
		y.holdAlone(edge, first.CA.Pin())
	})
}

// replacedIn says after how many years which key is replaced that never ends.
var replacedIn = map[int]rotation.Kind{2: rotation.AccountKey, 4: rotation.GossipKey, 6: rotation.EncryptionKey}

func newYears(t *testing.T) *years {
	c, err := Start(t.Context(), Config{InMemory: true, Replicas: 3, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	y := &years{T: t, c: c, requests: map[string]int{}, keptLater: keptLater, tokensLast: tokensLast}
	t.Cleanup(func() { y.must(c.Stop()) })
	c.network.listen(outside)
	y.must(c.Ready(t.Context()))
	config, err := c.RESTConfig()
	y.must(err)
	config.Transport = again{y, config.Transport}
	y.inside = kubernetes.NewForConfigOrDie(config)
	y.until("the namespace's bundle", func() bool {
		_, err := y.inside.CoreV1().ConfigMaps("default").Get(t.Context(), "kube-root-ca.crt", metav1.GetOptions{})
		return err == nil
	})
	_, err = y.inside.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "readers"},
		Subjects: []rbacv1.Subject{
			{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: "team"}, {Kind: rbacv1.ServiceAccountKind, Namespace: "default", Name: "default"},
		},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
	}, metav1.CreateOptions{})
	y.must(err)
	return y
}

func (y *years) must(err error) {
	y.Helper()
	if err != nil {
		y.Fatalf("%s: %v", y.now().Format(time.DateTime), err)
	}
}

// until waits for a minute at most.
func (y *years) until(what string, is func() bool) {
	y.Helper()
	for range 600 {
		if is() {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	y.mu.Lock()
	defer y.mu.Unlock()
	y.Fatalf("%s: waited in vain for %s; failed: %s", y.now().Format(time.DateTime), what, strings.Join(y.failed[:min(20, len(y.failed))], "\n"))
}

func (y *years) now() time.Time { return y.c.Clock().Now() }

// jump lets months pass, and then the seconds in which agents hear from their servers.
func (y *years) jump(d time.Duration) {
	y.must(y.c.Jump(y.Context(), d))
	time.Sleep(4 * time.Second)
}

// note counts a request.
func (y *years) note(who string, err error) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.requests[who]++
	if err != nil {
		y.failed = append(y.failed, fmt.Sprintf("%s: %s: %v", y.now().Format(time.DateTime), who, err))
	}
}

// isWarned reports whether somebody is told that the authority ends.
func (y *years) isWarned() bool {
	return trust.Expiry{Kind: trust.KindAuthority, Expires: y.c.trust.CA.Expires()}.EndsSoon(y.now())
}

// rotateAll replaces what the administrator is told of. What the old authority signs is believed by nobody then.
func (y *years) rotateAll(old *trust.Cluster) {
	for _, kind := range []rotation.Kind{rotation.Serving, rotation.CA, rotation.FrontProxy, rotation.Serving} {
		y.rotate(kind)
	}
	if !y.isTold {
		y.Error("nobody is told who still shows certificates of the old authority")
	}
	id, err := old.CA.IssueAdmin(y.now())
	y.must(err)
	id.CAPEM = y.c.trust.CA.CertPEM()
	if err := y.get(y.identified(id, 0)); err == nil {
		y.Error("who shows a certificate of the old authority is let in")
	}
	id, err = y.c.trust.CA.IssueAdmin(y.now())
	y.must(err)
	id.CAPEM = old.CA.CertPEM()
	var unknown x509.UnknownAuthorityError
	if err := y.get(y.identified(id, 0)); !errors.As(err, &unknown) {
		y.Errorf("who believes the old authority: %v", err)
	}
}

// rotate replaces one kind, and lets days pass until it is done.
func (y *years) rotate(kind rotation.Kind) {
	p := y.order(kind, rotations.Begin)
	for range 60 {
		if p = y.order(kind, rotations.Status); p.Phase == rotation.Done {
			return
		}
		_, isSeen := p.Former["anna"]
		y.isTold = y.isTold || isSeen && strings.Contains(p.Line(), "anna (last 20")
		if p.Until != nil {
			y.jump(min(day, p.Until.Sub(y.now())))
		} else {
			time.Sleep(time.Second)
		}
	}
	y.Fatalf("it does not end: %s", p.Line())
}

func (y *years) order(kind rotation.Kind, what string) rotation.Progress {
	p, err := y.tryOrder(rotations.Order{Kind: kind, Order: what})
	y.must(err)
	return p
}

// holdAlone fails if anybody holds another authority than the new one, or the pod is not what it was.
func (y *years) holdAlone(edge *edge, old string) {
	held := map[string][]string{"the agent": edge.membership.AuthoritiesHeld()}
	for _, one := range y.c.replicas.servers {
		held[one.config.Name] = one.config.Trust.CA.Ring().IDs()
	}
	bundles, err := y.inside.CoreV1().ConfigMaps("").List(y.Context(), metav1.ListOptions{FieldSelector: "metadata.name=kube-root-ca.crt"})
	y.must(err)
	for _, m := range bundles.Items {
		held[m.Namespace], err = (&trust.Identity{CAPEM: []byte(m.Data["ca.crt"])}).Pins()
		y.must(err)
	}
	for who, pins := range held {
		if want := []string{y.c.trust.CA.Pin()}; !slices.Equal(pins, want) || pins[0] == old {
			y.Errorf("%s holds %v, want %v", who, pins, want)
		}
	}
	p, err := y.inside.CoreV1().Pods("default").Get(y.Context(), edge.pod.Name, metav1.GetOptions{})
	y.must(err)
	if p.UID != edge.pod.UID || p.DeletionTimestamp != nil || p.Status.Phase != corev1.PodRunning {
		y.Errorf("the pod is another one, or ends: %s", p.Status.Phase)
	}
}
