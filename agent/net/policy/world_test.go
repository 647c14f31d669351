package policy

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/agent/net/policy/plan"
)

const (
	generatedWorlds, generatedSteps = 200, 60
	// fewAddresses are soon used again.
	fewAddresses = 8
)

// generated is a node whose pods lose their sandboxes in every way, beside what the policies know of it.
type generated struct {
	t      *testing.T
	random *rand.Rand
	here   here
	now    time.Time
	api    []*corev1.Pod
	// runs are the sandboxes that run, by their addresses; dead ones still have theirs until they are cleared away.
	runs, dead map[netip.Addr]types.UID
	log        []string
}

// TestRulesFollowWhatRuns: shims are killed, sockets deleted, agents and machines started again, and addresses given to others at once.
// Whatever the policies were told of before: each address where somebody runs is that pod's, here, and nobody else's.
func TestRulesFollowWhatRuns(t *testing.T) {
	for seed := range uint64(generatedWorlds) {
		g := &generated{
			t: t, random: rand.New(rand.NewPCG(seed, 0)), here: here{}, now: time.Unix(1, 0),
			runs: map[netip.Addr]types.UID{}, dead: map[netip.Addr]types.UID{},
		}
		steps := []func(){g.start, g.start, g.remake, g.shimKilled, g.remake, g.cleared, g.told, g.agentRestarts, g.reboot, g.checked}
		for range generatedSteps {
			steps[g.random.IntN(len(steps))]()
			if g.look(); t.Failed() {
				t.Fatalf("seed %d: %v", seed, g.log)
			}
		}
	}
}

func (g *generated) say(format string, args ...any) {
	g.log = append(g.log, fmt.Sprintf(format, args...))
}

// any returns one of the addresses, as the seed has it.
func (g *generated) any(of map[netip.Addr]types.UID) (address netip.Addr, ok bool) {
	var all []netip.Addr
	for a := range of {
		all = append(all, a)
	}
	if len(all) == 0 {
		return address, false
	}
	slices.SortFunc(all, netip.Addr.Compare)
	return all[g.random.IntN(len(all))], true
}

// connect gives a pod a sandbox at a free address, once it is admitted.
func (g *generated) connect(uid types.UID) {
	for i := range fewAddresses {
		address := netip.AddrFrom4([4]byte{10, 42, 0, byte(i + 2)})
		if g.runs[address] == "" && g.dead[address] == "" {
			g.here.add(sandboxAt(uid, address), g.now)
			g.runs[address] = uid
			g.say("%s at %s", uid, address)
			return
		}
	}
}

func sandboxAt(uid types.UID, address netip.Addr) Sandbox {
	return Sandbox{Namespace: "ns", UID: uid, Labels: map[string]string{"app": string(uid)}, Addresses: []netip.Addr{address}}
}

func (g *generated) start() {
	uid := types.UID(fmt.Sprint("pod", len(g.api)))
	g.api = append(g.api, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: string(uid), UID: uid, Labels: map[string]string{"app": string(uid)}}})
	g.connect(uid)
}

// remake gives a pod whose sandbox has died another one.
func (g *generated) remake() {
	if address, ok := g.any(g.dead); ok && !g.has(g.dead[address]) {
		g.connect(g.dead[address])
	}
}

func (g *generated) has(uid types.UID) bool {
	for _, running := range g.runs {
		if running == uid {
			return true
		}
	}
	return false
}

func (g *generated) shimKilled() {
	if address, ok := g.any(g.runs); ok {
		g.say("the shim at %s is killed", address)
		g.dead[address] = g.runs[address]
		delete(g.runs, address)
	}
}

// cleared gives the address of a dead sandbox back.
func (g *generated) cleared() {
	if address, ok := g.any(g.dead); ok {
		g.say("%s is free", address)
		delete(g.dead, address)
	}
}

// told lets the API know where a pod is.
func (g *generated) told() {
	if address, ok := g.any(g.runs); ok {
		i := slices.IndexFunc(g.api, func(p *corev1.Pod) bool { return p.UID == g.runs[address] })
		g.api[i] = g.api[i].DeepCopy()
		g.api[i].Status.PodIPs = []corev1.PodIP{{IP: address.String()}}
	}
}

// connected is what the runtime says.
func (g *generated) connected() (all []Sandbox) {
	for address, uid := range g.runs {
		all = append(all, sandboxAt(uid, address))
	}
	return all
}

// agentRestarts: a socket that was deleted meanwhile makes its sandbox a dead one.
func (g *generated) agentRestarts() {
	if g.random.IntN(2) == 0 {
		g.shimKilled()
	}
	g.say("the agent starts again")
	g.here = here{}
	for _, s := range g.connected() {
		g.here.add(s, g.now)
	}
}

func (g *generated) reboot() {
	if g.random.IntN(4) > 0 {
		return
	}
	g.say("the machine starts again")
	for address, uid := range g.runs {
		g.dead[address] = uid
	}
	clear(g.runs)
	g.here = here{}
}

// checked is what happens every pruneInterval.
func (g *generated) checked() {
	g.now = g.now.Add(pruneInterval)
	g.here.prune(g.connected(), g.now)
	for address := range g.here {
		if g.runs[address] == "" && g.now.Sub(g.here[address].since) >= pruneInterval {
			g.t.Errorf("%s is still known, and nobody runs there", address)
		}
	}
}

// look compares what is planned with what runs. What the API says of addresses where nobody runs may be of yesterday.
func (g *generated) look() {
	owners := map[netip.Addr][]*plan.Pod{}
	for _, pod := range g.here.pods(g.api) {
		for _, address := range pod.Addresses {
			owners[address] = append(owners[address], pod)
		}
	}
	for address, uid := range g.runs {
		if all := owners[address]; len(all) != 1 {
			g.t.Errorf("%s runs at %s, which %d pods are said to have", uid, address, len(all))
		} else if pod := all[0]; !pod.Here || pod.Labels["app"] != string(uid) {
			g.t.Errorf("%s runs at %s, which has the rules of %s, here %v", uid, address, pod.Labels, pod.Here)
		}
	}
}
