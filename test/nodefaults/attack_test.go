package nodefaults

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
)

const (
	execsVariable, watchesVariable = "NODEFAULTS_EXECS", "NODEFAULTS_WATCHES"
	// attackExecs and attackWatches are what one tenant opens unless the variables say how many: more than one pod's share of streams.
	attackExecs, attackWatches = 270, 60
	// podShare and nodeShare are what one pod and one namespace have of a node's streams, watchShare what a user has of a server's watches.
	podShare, nodeShare, watchShare = 256, 512, 1000
	// execsOfPod is how many execs one pod gets: with less than podShare the namespace's share is what ends them.
	execsOfPod = 300
	// openersMax is how many execs and watches are begun at once.
	openersMax = 16
	// eventsQuota is how many Events the attacker's namespace may have; what is there is written again and again.
	eventsQuota = 200
	// victimRounds is how often another tenant reads, creates and execs while he is measured.
	victimRounds = 100
)

// watchedPaths are what the attacker watches; every second one is a list of Events, which his pods write.
var watchedPaths = []string{
	"/api/v1/namespaces/%s/events", "/api/v1/namespaces/%s/pods",
	"/apis/events.k8s.io/v1/namespaces/%s/events", "/api/v1/namespaces/%s/configmaps",
	"/api/v1/namespaces/%s/events", "/apis/apps/v1/namespaces/%s/deployments",
	"/apis/events.k8s.io/v1/namespaces/%s/events", "/apis/batch/v1/namespaces/%s/jobs",
	"/api/v1/namespaces/%s/events", "/api/v1/namespaces/%s/services",
	"/apis/events.k8s.io/v1/namespaces/%s/events", "/apis/networking.k8s.io/v1/namespaces/%s/ingresses",
	"/api/v1/namespaces/%s/events", "/apis/discovery.k8s.io/v1/namespaces/%s/endpointslices",
}

// attack: one tenant holds as many execs at the node as it lets him, and as many watches as the server does, while his pods write Events
// that half of the watches are sent. Whatever is beyond his shares is refused with the reason. Another tenant reads, creates and execs
// all the while without one refusal, and when it is over the attacker's places are free again.
func attack(t *testing.T, n *node) {
	klog.SetLogger(logr.Discard()) // client-go tells of each WebSocket that ends
	execs, watches := number(t, execsVariable, attackExecs), number(t, watchesVariable, attackWatches)
	victim, attacker := newTenant(t, n, "vera", 1), newTenant(t, n, "mallory", (execs+execsOfPod-1)/execsOfPod)
	attacker.limitEvents(t)
	t.Logf("before: %s; %s", victim.measure(t), n.memory(t))
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() { attacker.writeEvents(ctx, t) })
	watching := attacker.openAll(ctx, &all, watches, attacker.watch)
	holding := attacker.openAll(ctx, &all, execs, attacker.hold)
	t.Logf("the attacker holds %s of %d watches and %s of %d execs", watching, watches, holding, execs)
	for _, wrong := range slices.Concat(
		watching.wrong(watches, watchShare), holding.wrong(execs, min(nodeShare, podShare*((execs+execsOfPod-1)/execsOfPod))),
	) {
		t.Error(wrong)
	}
	t.Logf("during: %s; %s", victim.measure(t), n.memory(t))
	stop()
	all.Wait()
	n.await(t, podTimeMax, "places that are given back", func(ctx context.Context) string {
		if err := attacker.tell(ctx, true, attacker.pod(0)); err != nil {
			return err.Error()
		}
		return ""
	})
	t.Logf("after: %s; %s", victim.measure(t), n.memory(t))
	if refused := victim.refused.Load(); refused > 0 {
		t.Errorf("%d requests of the other tenant were refused", refused)
	}
	attacker.end(t)
	victim.end(t)
}

func number(t *testing.T, variable string, usual int) int {
	text := os.Getenv(variable)
	if text == "" {
		return usual
	}
	chosen, err := strconv.Atoi(text)
	check(t, err)
	return chosen
}

// limitEvents is a quota of the Events that his pods write.
func (a *tenant) limitEvents(t *testing.T) {
	_, err := a.n.client.CoreV1().ResourceQuotas(a.name).Create(t.Context(), &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "events"}, Spec: corev1.ResourceQuotaSpec{
			Hard: corev1.ResourceList{"count/events": resource.MustParse(strconv.Itoa(eventsQuota))},
		},
	}, metav1.CreateOptions{})
	check(t, err)
}

// opened is what came of many attempts.
type opened struct {
	mu      sync.Mutex
	held    int
	refused map[string]int // by the reason, without numbers
	broken  map[string]int // of those that were held
}

// String tells how many are held, and why others are not.
func (o *opened) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return fmt.Sprint(o.held, " (refused: ", o.refused, ", broken: ", o.broken, ")")
}

// wrong wants the whole share to be held, and all the others to be refused and told which share they are beyond.
func (o *opened) wrong(attempts, share int) (all []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	refusals := 0
	for reason, n := range o.refused {
		if !strings.Contains(reason, "its share") {
			all = append(all, "refused without a reason: "+reason)
		}
		refusals += n
	}
	for reason, n := range o.broken {
		all = append(all, fmt.Sprintf("%d were held and broke: %s", n, reason))
	}
	if want := min(attempts, share); o.held != want || refusals != attempts-want {
		all = append(all, fmt.Sprintf("%d are held and %d refused of %d, and the share is %d", o.held, refusals, attempts, share))
	}
	return all
}

// TestWhatAnAttackShows: a node that refuses more than it has to is found, and so is one that breaks what it let in.
func TestWhatAnAttackShows(t *testing.T) {
	beyond := func(n int) map[string]int { return map[string]int{"pod has its share": n} }
	for name, c := range map[string]struct {
		o    *opened
		want int
	}{
		"the share":       {&opened{held: 2, refused: beyond(1)}, 0},
		"one less":        {&opened{held: 1, refused: beyond(2)}, 1},
		"one more":        {&opened{held: 3}, 1},
		"nothing":         {&opened{refused: beyond(3)}, 1},
		"no reason":       {&opened{held: 2, refused: map[string]int{"no": 1}}, 1},
		"one that breaks": {&opened{held: 2, refused: beyond(1), broken: map[string]int{"EOF": 1}}, 1},
	} {
		if got := c.o.wrong(3, 2); len(got) != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := (&opened{held: 3}).wrong(3, 4); len(got) != 0 {
		t.Errorf("less than the share: %q", got)
	}
}

// openAll begins so many, some at a time, and returns when each is held or refused.
func (a *tenant) openAll(
	ctx context.Context, all *sync.WaitGroup, count int, open func(ctx context.Context, i int, held func()) error,
) *opened {
	o := &opened{refused: map[string]int{}, broken: map[string]int{}}
	openers := make(chan struct{}, openersMax)
	var begun sync.WaitGroup
	for i := range count {
		openers <- struct{}{}
		begun.Add(1)
		all.Go(func() {
			known := sync.OnceFunc(func() { <-openers; begun.Done() })
			var isHeld atomic.Bool
			err := open(ctx, i, sync.OnceFunc(func() {
				o.mu.Lock()
				o.held++
				o.mu.Unlock()
				isHeld.Store(true)
				known()
			}))
			if ctx.Err() == nil {
				o.fail(isHeld.Load(), err)
			}
			known()
		})
	}
	begun.Wait()
	return o
}

// fail counts what was refused, or held before and has ended by itself.
func (o *opened) fail(wasHeld bool, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	reasons := o.refused
	if wasHeld {
		reasons = o.broken
	}
	reasons[withoutNumbers(fmt.Sprint(err))]++
}

func withoutNumbers(text string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, text)
}

// hold is an exec that stays, every second one by WebSocket.
func (a *tenant) hold(ctx context.Context, i int, held func()) error {
	in, ended := io.Pipe()
	defer ended.Close()
	context.AfterFunc(ctx, func() { _ = ended.Close() })
	return a.exec(ctx, i%2 == 1, a.pod(i/execsOfPod), in, writerFunc(held), "/workload", "hold")
}

// writerFunc is called for each part that is written.
type writerFunc func()

// Write implements io.Writer.
func (f writerFunc) Write(p []byte) (int, error) { f(); return len(p), nil }

// watch reads and forgets whatever comes. It comes back when the server ends it, or ctx does.
func (a *tenant) watch(ctx context.Context, i int, held func()) error {
	client, err := rest.HTTPClientFor(a.config)
	if err != nil {
		return err
	}
	at := a.config.Host + fmt.Sprintf(watchedPaths[i%len(watchedPaths)], a.name) + "?watch=1&timeoutSeconds=3000"
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return err
	}
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		text, _ := bufio.NewReader(answer.Body).ReadString('\n')
		return fmt.Errorf("%s: %s", answer.Status, text)
	}
	held()
	_, err = io.Copy(io.Discard, answer.Body) // it ends with ctx
	return err
}

// writeEvents is what a pod of his does with its token: one Event after the other, and what the quota refuses is written over an older one.
func (a *tenant) writeEvents(ctx context.Context, t *testing.T) {
	token, err := a.n.client.CoreV1().ServiceAccounts(a.name).CreateToken(ctx, "default", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Error(err)
		return
	}
	config := rest.AnonymousClientConfig(a.n.config)
	config.BearerToken, config.QPS = token.Status.Token, -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Error(err)
		return
	}
	events, written := client.CoreV1().Events(a.name), 0
	for ; ctx.Err() == nil; written++ {
		name := fmt.Sprintf("e-%d", written)
		_, err := events.Create(ctx, &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Reason: "Noise", Type: corev1.EventTypeNormal, Message: strings.Repeat("noise ", 100),
			InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: a.name, Name: a.pod(0)},
		}, metav1.CreateOptions{})
		if apierrors.IsForbidden(err) {
			patch := fmt.Appendf(nil, `{"count":%d}`, written)
			_, err = events.Patch(ctx, fmt.Sprintf("e-%d", written%(eventsQuota/2)), types.MergePatchType, patch, metav1.PatchOptions{})
		}
		if err != nil && ctx.Err() == nil && !apierrors.IsTooManyRequests(err) {
			t.Errorf("Event %d: %v", written, err)
			return
		}
	}
	t.Logf("his pods wrote %d Events", written)
}
