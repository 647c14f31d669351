package ui

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

var floodFor = flag.Duration("flood", 2*time.Second, "how long each view of a page gets 10,000 events a second")

const (
	floodNodes, floodPods = 100, 5_000
	// floodRate is how many events come in a second, in floodTurns turns.
	floodRate, floodTurns = 10_000, 100
	// podBytes is what a pod of a cluster has in JSON, most of it of no interest to the page.
	podBytes = 4_600
	// lastVersion of each pod is one in which it fails.
	lastVersion = 1_000_001
)

// flood is a server of lists, watches and logs that change faster than a small machine can change a cluster. Each flood begins when begin
// is sent to; ended is then sent how many events were taken, and in which time.
type flood struct {
	*httptest.Server
	begin chan struct{}
	ended chan string
}

func newFlood(t *testing.T) *flood {
	f := &flood{begin: make(chan struct{}), ended: make(chan string, 1)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1/nodes", listOrWatch(nodeItem, floodNodes, func(http.ResponseWriter, *http.Request) {}))
	mux.HandleFunc("GET /api/v1/pods", listOrWatch(podItem, floodPods, f.changes))
	mux.HandleFunc("GET /api/v1/namespaces/kube-system/pods/{pod}/log", f.log)
	mux.HandleFunc("POST /setpoint.v1.ClusterService/Loops", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{"server": "server-1", "term": 1, "at": time.Now(), "loops": []any{
			map[string]any{"loop": "replicaset-controller", "queue": "replicaset", "depth": 0, "working": 0, "writesPerMinute": 0},
		}})
	})
	f.Server = httptest.NewServer(mux)
	t.Cleanup(f.CloseClientConnections)
	return f
}

// listOrWatch answers a list of n items, and a watch with what changes tells.
func listOrWatch(item func(at, version int) string, n int, changes func(http.ResponseWriter, *http.Request)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Get("watch") == "" {
			items := make([]string, n)
			for i := range items {
				items[i] = item(i, 0)
			}
			fmt.Fprintf(w, `{"metadata": {"resourceVersion": "1"}, "items": [%s]}`, strings.Join(items, ","))
			return
		}
		_ = http.NewResponseController(w).Flush() // the browser is gone if this fails
		changes(w, r)
		<-r.Context().Done()
	}
}

func nodeItem(at, _ int) string {
	return fmt.Sprintf(`{"metadata": {"name": "node-%d"}, "spec": {}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}`, at)
}

// podItem is a pod that is ready, or failing in odd versions.
func podItem(at, version int) string {
	ready, waiting := "True", ""
	if version%2 == 1 {
		ready, waiting = "False", `"waiting": {"reason": "CrashLoopBackOff"}`
	}
	text := fmt.Sprintf(`"metadata": {"name": "web-%d", "namespace": "default", "resourceVersion": "%d"}, "spec": {"nodeName": "node-%d"}, "status": {
		"phase": "Running", "conditions": [{"type": "Ready", "status": "%s"}], "containerStatuses": [{"restartCount": %d, "state": {%s}}]}`,
		at, version*floodPods+at+2, at%floodNodes, ready, version, waiting)
	text = strings.NewReplacer("\n", "", "\t", "").Replace(text)
	return fmt.Sprintf(`{"padding": "%s", %s}`, strings.Repeat("x", podBytes-len(text)), text)
}

// changes tells of all pods, again and again, and ends with a version in which each of them fails.
func (f *flood) changes(w http.ResponseWriter, r *http.Request) {
	tell := func(at, version int) { fmt.Fprintf(w, `{"type": "MODIFIED", "object": %s}`+"\n", podItem(at, version)) }
	f.pour(w, r, func(i int) { tell(i%floodPods, 1+i/floodPods) }, func() {
		tell(0, lastVersion-1) // in one picture with the next
		for at := range floodPods {
			tell(at, lastVersion)
		}
	})
}

// log tells of as many acts of one of the two parts.
func (f *flood) log(w http.ResponseWriter, r *http.Request) {
	_ = http.NewResponseController(w).Flush()
	if !strings.HasPrefix(r.PathValue("pod"), "kube-controller-manager") {
		<-r.Context().Done()
		return
	}
	act := func(i int, object string) {
		fmt.Fprintf(w, "%s loop=replicaset-controller object=%s wanted=7 observed=%d done=\"create pods default/web-%d\" took=1ms because=\"ReplicaSet default/web, version %d\"\n",
			time.Now().UTC().Format(time.RFC3339Nano), object, i%7, i, i)
	}
	f.pour(w, r, func(i int) { act(i, "default/web") }, func() { act(0, "default/the-last") })
	<-r.Context().Done()
}

// pour calls one at the rate of the flood, and last in the end. It is late if what it calls is.
func (f *flood) pour(w http.ResponseWriter, r *http.Request, one func(i int), last func()) {
	ctx, flush := r.Context(), func() { _ = http.NewResponseController(w).Flush() } // the browser is gone if this fails
	select {
	case <-f.begin:
	case <-ctx.Done():
		return
	}
	begin, i := time.Now(), 0
	for turns := time.NewTicker(time.Second / floodTurns); time.Since(begin) < *floodFor && ctx.Err() == nil; <-turns.C {
		for range floodRate / floodTurns {
			one(i)
			i++
		}
		flush()
	}
	last()
	flush()
	f.ended <- fmt.Sprintf("%d events in %s", i, time.Since(begin).Round(time.Millisecond))
}

// TestAFlood: 10,000 events a second come to a page. It answers keys meanwhile, what it keeps is bounded, it says what it leaves out, and
// shows in the end what is. How well it kept up is logged.
func TestAFlood(t *testing.T) {
	f, theirs := newFlood(t), filepath.Join(t.TempDir(), "kubeconfig")
	writeKubeconfig(t, theirs, f.URL, "", "any")
	c := &cluster{t: t, binary: os.Getenv("SETPOINT")}
	p := c.pageOf(theirs)
	p.sees(".legend", "5000 ready")
	t.Log(p.pictures())
	for _, view := range []struct {
		name string
		see  func(*testing.T, *flood, *page)
	}{{"of changes", floodOfChanges}, {"of acts", floodOfActs}} {
		t.Run(view.name, func(t *testing.T) { view.see(t, f, p.of(t)) })
	}
	p.noFaults()
}

func floodOfChanges(t *testing.T, f *flood, p *page) {
	p.visit("#/cluster")
	p.sees(".legend", "100 of 100 nodes ready, 5000 pods", "5000 ready")
	p.measures(t, f, func() {
		p.do(chromedp.Focus(".grid [tabindex='0']", chromedp.ByQuery), chromedp.KeyEvent(kb.PageDown), chromedp.KeyEvent(kb.ArrowRight))
		p.sees(".detail:last-child", "default/web-")
	})
	p.sees(".legend", "5000 failing", "changes were left out")
	p.eventually("cells of those rows alone that can be seen", "((n) => n > 0 && n < 2500)(document.querySelectorAll('.grid .cell').length)")
}

func floodOfActs(t *testing.T, f *flood, p *page) {
	p.visit("#/loops")
	p.sees("[aria-label=Loops]", "replicaset-controller")
	p.measures(t, f, func() {
		p.sees("[aria-label=Acts]", "more were left out")
		p.do(chromedp.KeyEvent("p"))
		p.sees("[aria-label=Acts]", "held still")
		p.do(chromedp.KeyEvent("p"))
	})
	p.sees("[aria-label=Acts]", "default/the-last", "the newest 150 of 2000 acts")
	p.eventually("150 rows", "document.querySelectorAll('[aria-label=Acts] tbody tr').length === 150")
}

// pictures says when the first picture of a page of 5,000 pods came, how large its files are, and how long pictures took while somebody
// scrolled through all of it.
func (p *page) pictures() (said string) {
	p.t.Helper()
	p.do(chromedp.Evaluate(`(async () => {
		const took = [], grid = document.querySelector('.grid');
		for (let last = await new Promise(requestAnimationFrame); grid.scrollTop + grid.clientHeight < grid.scrollHeight;) {
			grid.scrollTop += 40;
			const now = await new Promise(requestAnimationFrame);
			took.push(now - last);
			last = now;
		}
		took.sort((a, b) => a - b);
		const files = performance.getEntriesByType('resource').filter((r) => /[.](js|css|svg)$/.test(r.name)).reduce((n, r) => n + r.encodedBodySize, 0);
		return 'first picture after ' + Math.round(performance.getEntriesByName('first-contentful-paint')[0].startTime) + ' ms, files of ' +
			Math.round(files / 1024) + ' KiB; scrolled in ' + took.length + ' pictures, of ' + Math.round(took[took.length >> 1]) + ' ms in the median, ' +
			Math.round(took.at(-1)) + ' ms at most';
	})()`, &said, func(e *runtime.EvaluateParams) *runtime.EvaluateParams { return e.WithAwaitPromise(true) }))
	return said
}

// measures has the flood come while somebody does something, and logs how long the page's own thread was busy at a stretch, and how soon it
// answered a question meanwhile.
func (p *page) measures(t *testing.T, f *flood, act func()) {
	t.Helper()
	p.do(chromedp.Evaluate(`globalThis.long = [];
		new PerformanceObserver((list) => list.getEntries().forEach((e) => long.push(e.duration))).observe({ type: 'longtask' })`, nil))
	f.begin <- struct{}{}
	act()
	var answers []time.Duration
	for sent := ""; sent == ""; {
		begin := time.Now()
		p.do(chromedp.Evaluate("1", nil))
		answers = append(answers, time.Since(begin))
		select {
		case sent = <-f.ended:
			t.Log(sent)
		case <-time.After(20 * time.Millisecond):
		}
	}
	slices.Sort(answers)
	said := ""
	p.do(chromedp.Evaluate("`${long.length} tasks of more than 50 ms, ${Math.round(long.reduce((a, b) => a + b, 0))} ms in all, the longest "+
		"${Math.round(Math.max(0, ...long))} ms, ${Math.round(performance.memory.usedJSHeapSize / 2 ** 20)} MiB of objects`", &said))
	t.Logf("%s; of %d answers the median came after %s, the last after %s", said, len(answers), answers[len(answers)/2], answers[len(answers)-1])
}
