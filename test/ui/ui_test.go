package ui

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// viewTimeout bounds how long a view may take to show what has happened.
const viewTimeout = 60 * time.Second

// TestPage goes through the views in the order in which somebody learns them: each finds the cluster as the one before has left it.
func TestPage(t *testing.T) {
	c := startCluster(t)
	p := openPage(t, c.page)
	c.setpoint("kubectl", "create", "deployment", "web", "--image=setpoint.local/demo:v1", "--replicas=4")
	for _, view := range []struct {
		name string
		see  func(*testing.T, *cluster, *page)
	}{
		{"servers", servers}, {"nodes and pods", nodesAndPods}, {"an object", object}, {"a loop", loop}, {"a held loop", heldLoop}, {"the slider", slider},
		{"keys", keys}, {"what if", whatIf}, {"buttons of loops", loopButtons}, {"buttons of a pod", podButtons}, {"buttons of a node", nodeButtons},
		{"buttons of servers", serverButtons}, {"a server that dies", serverDies},
	} {
		if !t.Run(view.name, func(t *testing.T) { view.see(t, c, p.of(t)) }) {
			return
		}
	}
	if faults := p.faults(); len(faults) > 0 {
		t.Errorf("the page has reported faults of its own: %q", faults)
	}
}

func servers(_ *testing.T, _ *cluster, p *page) {
	p.visit("#/cluster")
	p.sees("[aria-label=Servers]", "server-1", "server-2", "server-3", "leader", "follower")
	p.sees("#connection", "connected")
	p.picture("servers")
}

func nodesAndPods(t *testing.T, _ *cluster, p *page) {
	p.sees(".legend", "3 of 3 nodes ready")
	p.eventually("4 cells of pods that are ready", `document.querySelectorAll('.grid .cell.ready[aria-label*="default/web-"]').length >= 4`)
	p.picture("nodes")
	p.do(chromedp.Evaluate(`document.querySelector('.grid .cell.ready[aria-label*="default/web-"]').click()`, nil))
	p.eventually("the pod that was clicked", `location.hash.startsWith('#/object/pods/default/web-')`)
}

// object: the field that finds it, its owner, why it is as it is, and its history.
func object(t *testing.T, c *cluster, p *page) {
	c.setpoint("kubectl", "set", "image", "deployment/web", "demo=setpoint.local/demo:v2")
	p.do(chromedp.SetValue("#query", "deploy/web", chromedp.ByQuery), chromedp.Click("#find button", chromedp.ByQuery))
	p.sees("main", "Deployment default/web", "Available", "changed by", "created by admin")
	p.eventually("its history", `/demo:v2/.test(document.querySelector('main').textContent)`)
	p.picture("object")
}

// loop: what it wanted, observed and did, and because of which object.
func loop(_ *testing.T, c *cluster, p *page) {
	p.visit("#/loops")
	p.sees("[aria-label=Loops]", "deployment-controller", "replicaset-controller", "default-scheduler")
	c.setpoint("kubectl", "scale", "deployment/web", "--replicas=6")
	p.sees("[aria-label=Acts]", "replicaset-controller", "create pods default/web-", "ReplicaSet default/web-")
	p.do(chromedp.SetValue("#filter", "pods/binding", chromedp.ByQuery), chromedp.Evaluate(`document.querySelector('#filter').dispatchEvent(new Event('input'))`, nil))
	p.eventually("only bindings", `(([...rows]) => rows.length > 0 && rows.every((r) => r.textContent.includes('pods/binding')))(
		document.querySelectorAll('[aria-label=Acts] tbody tr'))`)
	p.picture("loops")
}

// heldLoop: what pause, step and resume of the command line do is seen on the page.
func heldLoop(t *testing.T, c *cluster, p *page) {
	c.setpoint("loops", "pause", "deployment")
	p.sees("[aria-label=Loops]", "deployment-controller (paused)")
	p.picture("paused")
	c.setpoint("kubectl", "create", "deployment", "held", "--image=setpoint.local/demo:v1")
	for until := time.Now().Add(viewTimeout); !strings.Contains(c.setpoint("loops", "step", "deployment"), "create replicasets default/held-"); {
		if time.Now().After(until) {
			t.Fatal("no step has made the ReplicaSet")
		}
	}
	c.setpoint("loops", "resume", "deployment")
	p.eventually("it goes on", `!document.querySelector('[aria-label=Loops]').textContent.includes('(paused)')`)
}

// slider: the cluster as it was before its pods went.
func slider(_ *testing.T, c *cluster, p *page) {
	p.visit("#/cluster")
	p.sees(".legend", "nodes ready")
	p.eventually("pods", podsOf(".cell.ready")+" >= 6")
	c.setpoint("kubectl", "delete", "deployment", "web", "held")
	p.eventually("no pods", podsOf(".cell")+" === 0")
	p.eventually("history", `Number(document.querySelector('#time').max) > 10`)
	p.do(chromedp.Click(`[aria-label="ten seconds back"]`, chromedp.ByQuery))
	p.eventually("another time", `document.querySelector('main.past') && /, revision [1-9]/.test(document.querySelector('.time output').textContent)`)
	p.do(chromedp.KeyEvent("n"))
	// They may have been there for less than ten seconds.
	p.eventually("the pods that were", podsOf("main.past .cell.ready")+` >= 4 || (document.querySelector('.grid').ariaBusy === 'false' && (() => {
		const time = document.querySelector('#time');
		time.stepDown();
		time.dispatchEvent(new Event('input'));
	})(), false)`)
	p.picture("past")
	p.do(chromedp.KeyEvent("n"))
	p.eventually("now", `!document.querySelector('main.past') && `+podsOf(".cell")+" === 0")
}

// podsOf counts those cells of pods that this test has made: the parts of the servers are shown as pods, too.
func podsOf(cells string) string {
	return "[...document.querySelectorAll(" + quoted(cells) + ")].filter((c) => /default\\/(web|held)-/.test(c.getAttribute('aria-label'))).length"
}

// keys: the views without a pointer.
func keys(_ *testing.T, _ *cluster, p *page) {
	for _, at := range []struct{ key, view string }{{"2", "loops"}, {"3", "object"}, {"4", "what-if"}, {"1", "cluster"}} {
		p.do(chromedp.KeyEvent(at.key))
		p.eventually("the view "+at.view, `document.querySelector('main').className.split(' ').includes('`+at.view+`')`)
	}
}

// serverDies: the whole cluster stops, and the page says so and stays.
func serverDies(_ *testing.T, c *cluster, p *page) {
	p.visit("#/cluster")
	p.sees("#connection", "connected")
	c.stop()
	p.sees("#connection", "no server answers", "Trying again")
	p.picture("nobody")
}

// eventually waits until an expression is true.
func (p *page) eventually(what, expression string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, viewTimeout)
	defer cancel()
	if err := chromedp.Run(ctx, chromedp.Poll(expression, nil, chromedp.WithPollingInterval(200*time.Millisecond), chromedp.WithPollingTimeout(viewTimeout))); err != nil {
		p.picture("failed")
		p.t.Fatalf("the page does not show %s: %v. It says:\n%s", what, err, p.text("body"))
	}
}
