package ui

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// presses a button by its name, and waits until the page has said what came of it.
func (p *page) presses(name, said string) {
	p.t.Helper()
	button := "button[aria-label=" + quoted(name) + "]"
	p.eventually("the button "+name, "!!document.querySelector("+quoted(button)+")")
	p.do(chromedp.Evaluate("document.querySelector("+quoted(button)+").click()", nil))
	p.sees("#said", said)
}

// whatIf asks what a drained node would do, and sees both states side by side.
func whatIf(t *testing.T, c *cluster, p *page) {
	c.setpoint("kubectl", "create", "deployment", "shop", "--image=setpoint.local/demo:v1", "--replicas=6")
	c.setpoint("kubectl", "rollout", "status", "deployment/shop")
	p.visit("#/what-if")
	ask := func(act, target string) {
		p.do(chromedp.SetValue("#act", act, chromedp.ByQuery), chromedp.SetValue("#target", target, chromedp.ByQuery),
			chromedp.Click("form.question button", chromedp.ByQuery))
	}
	ask("drain", "no-such-node")
	p.sees("main", `there is no node "no-such-node"`)
	ask("drain", "sim-1")
	p.sees("#answer", "If node/sim-1 is drained", "Nothing changes any more", "not there then", "new", "cordoned", "Moved", "Assumed")
	p.eventually("two states", `((sides) => sides?.querySelectorAll('tr.differs').length > 1 && !!sides.querySelector('.cell.ends') && !!sides.querySelector('.cell.comes'))(
		document.querySelector('.sides'))`)
	p.picture("what-if")
	p.dark(true)
	p.picture("what-if-dark")
	p.dark(false)
	ask("scale", "deployment/shop=60000")
	p.do(chromedp.Click(`//button[text()="Stop"]`, chromedp.BySearch))
	p.sees("main", "stopped")
	p.visit("#/cluster")
	p.visit("#/what-if")
	p.sees("#answer", "If node/sim-1 is drained") // the last answer is there still
	if pods := c.setpoint("kubectl", "get", "pods", "-l", "app=shop", "-o", "name"); strings.Count(pods, "pod/") != 6 {
		t.Errorf("a question has changed the cluster: %s", pods)
	}
}

// loopButtons: a loop is held, let one pass through, and goes on.
func loopButtons(t *testing.T, c *cluster, p *page) {
	p.visit("#/loops")
	p.presses("Pause replicaset-controller replicaset", "replicaset is paused")
	p.sees("[aria-label=Loops]", "(paused)")
	c.setpoint("kubectl", "scale", "deployment/shop", "--replicas=7")
	p.presses("Step replicaset-controller replicaset", "replicaset may do one pass")
	p.sees("[aria-label=Loops]", "replicaset-controller (paused)")
	p.picture("held")
	for _, table := range []string{"Loops", "Acts"} {
		if wide := p.overflows("[aria-label=" + table + "]"); wide > 0 {
			t.Errorf("the table of %s is cut by %d pixels", table, wide)
		}
	}
	p.presses("Resume replicaset-controller replicaset", "replicaset goes on")
	p.eventually("it goes on", `!document.querySelector('[aria-label=Loops]').textContent.includes('(paused)')`)
	c.setpoint("kubectl", "wait", "deployment/shop", "--for=jsonpath={.status.readyReplicas}=7", "--timeout=60s")
}

// overflows is by how many pixels what an element contains is wider than it.
func (p *page) overflows(selector string) (pixels int) {
	p.t.Helper()
	p.do(chromedp.Evaluate("((e) => e.scrollWidth - e.clientWidth)(document.querySelector("+quoted(selector)+"))", &pixels))
	return pixels
}

func podButtons(_ *testing.T, c *cluster, p *page) {
	name := strings.Fields(c.setpoint("kubectl", "get", "pods", "-l", "app=shop", "-o", "jsonpath={.items[*].metadata.name}"))[0]
	p.visit("#/object/pods/default/" + name)
	p.presses("Kill pod default/"+name, "has crashed")
	p.eventually("the pod does not run", `document.querySelector('main').textContent.includes('ContainersNotReady')`)
	p.picture("pod")
	p.presses("Heal pod default/"+name, "runs")
	c.setpoint("kubectl", "wait", "pod/"+name, "--for=condition=Ready", "--timeout=60s")
}

func nodeButtons(_ *testing.T, c *cluster, p *page) {
	p.visit("#/object/nodes/-/sim-3")
	p.presses("Kill node sim-3", "is switched off")
	c.setpoint("kubectl", "wait", "node/sim-3", "--for=condition=Ready=Unknown", "--timeout=120s")
	p.visit("#/cluster")
	p.sees(".legend", "2 of 3 nodes ready")
	p.picture("lost")
	p.visit("#/object/nodes/-/sim-3")
	p.presses("Heal node sim-3", "is switched on")
	c.setpoint("kubectl", "wait", "node/sim-3", "--for=condition=Ready", "--timeout=60s")
}

// serverButtons: a follower is killed, which the table says, and started again. The focus stays on the button that was pressed.
func serverButtons(_ *testing.T, _ *cluster, p *page) {
	p.visit("#/cluster")
	p.sees("[aria-label=Servers]", "leader", "follower", "Kill")
	follower := ""
	p.do(chromedp.Evaluate(`[...document.querySelectorAll('[aria-label=Servers] tbody tr')].find((row) => row.cells[1].textContent === 'follower').cells[0].textContent`,
		&follower))
	kill := "Kill server " + follower
	p.do(chromedp.Focus("button[aria-label="+quoted(kill)+"]", chromedp.ByQuery))
	p.presses(kill, "server "+follower+" stops")
	p.sees("[aria-label=Servers]", "does not answer")
	p.eventually("the focus", "document.activeElement.getAttribute('aria-label') === "+quoted(kill))
	p.picture("killed")
	p.presses("Heal server "+follower, "server "+follower+" is started")
	p.eventually("all servers", `!document.querySelector('[aria-label=Servers]').textContent.includes('does not answer')`)
}

// TestTheClock: a cluster with a clock of its own has a button that moves it, and the page goes by that clock.
func TestTheClock(t *testing.T) {
	c := ownTime(t)
	p := openPage(t, c.page)
	p.visit("#/cluster")
	p.sees(".legend", "2 of 2 nodes ready")
	p.do(chromedp.SetValue("#minutes", "30", chromedp.ByQuery))
	p.presses("Move the cluster's clock", "30 minutes have passed")
	p.visit("#/object/nodes/-/sim-1")
	p.sees("main", "30 min ago")
	p.presses("Kill node sim-1", "is switched off")
	p.picture("clock")
	if faults := p.faults(); len(faults) > 0 {
		t.Errorf("the page has reported faults of its own: %q", faults)
	}
}
