package dns

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/agent/net/dns/corefile"
	"github.com/setpoint-io/setpoint/agent/net/dns/forward"
	"github.com/setpoint-io/setpoint/agent/net/resolvconf"
	"github.com/setpoint-io/setpoint/internal/clusterdns"
)

const dnsPort = 53

// routes say who answers which names; they do not change.
type routes struct {
	text     string // of the Corefile
	config   corefile.Config
	node     []netip.AddrPort // servers of the node
	excluded []netip.AddrPort // those that lead back here
	branches map[*corefile.Block][]branch
	usual    *forward.Forwarder // for names that no block has
	cancel   context.CancelFunc // ends what is under way
}

// branch is one forward of a block.
type branch struct {
	corefile.Forward
	*forward.Forwarder
}

// route builds the routes anew if the ConfigMap or the node's file says something else.
func (s *server) route(ctx context.Context) {
	text, about := s.corefile()
	node := serversOf(resolvconf.Read(s.ResolvConf).Servers, s.Network.Held())
	old := s.routes.Load()
	if old != nil && old.text == text && slices.Equal(old.node, node) {
		return
	}
	next := s.newRoutes(ctx, text, node, nil)
	s.replace(next)
	s.tell(about, next.config.Problems)
}

func (s *server) replace(next *routes) {
	if old := s.routes.Swap(next); old != nil {
		old.cancel()
	}
}

func (s *server) corefile() (string, *corev1.ObjectReference) {
	config, err := s.configs.Core().V1().ConfigMaps().Lister().ConfigMaps(metav1.NamespaceSystem).Get(clusterdns.ConfigMap)
	if err != nil {
		return "", nil
	}
	return config.Data[clusterdns.ConfigKey], &corev1.ObjectReference{
		APIVersion: "v1", Kind: "ConfigMap", Namespace: metav1.NamespaceSystem, Name: clusterdns.ConfigMap, UID: types.UID(config.UID),
	}
}

// tell says once what is not honoured.
func (s *server) tell(about *corev1.ObjectReference, problems []corefile.Problem) {
	told := map[string]bool{}
	for _, p := range problems {
		told[p.String()] = true
		if about != nil && !s.told[p.String()] {
			s.Problem(about, p.String())
		}
	}
	s.told = told
}

func (s *server) newRoutes(ctx context.Context, text string, node, excluded []netip.AddrPort) *routes {
	ctx, cancel := context.WithCancel(ctx)
	r := &routes{
		text: text, config: corefile.Parse(text), node: node, excluded: excluded, branches: map[*corefile.Block][]branch{}, cancel: cancel,
	}
	r.usual = s.forwarder(ctx, r, node, corefile.Forward{}, &corefile.Block{})
	for i := range r.config.Blocks {
		b := &r.config.Blocks[i]
		for _, f := range b.Forwards {
			upstreams := parsed(f.To)
			for _, file := range f.Files {
				servers := node
				if file != resolvconf.DefaultPath {
					servers = serversOf(resolvconf.Read(file).Servers, s.Network.Held())
				}
				upstreams = append(upstreams, servers...)
			}
			r.branches[b] = append(r.branches[b], branch{f, s.forwarder(ctx, r, upstreams, f, b)})
		}
		if len(b.Forwards) == 0 {
			r.branches[b] = []branch{{corefile.Forward{From: []string{"."}}, s.forwarder(ctx, r, node, corefile.Forward{}, b)}}
		}
	}
	return r
}

func (s *server) forwarder(
	ctx context.Context, r *routes, upstreams []netip.AddrPort, f corefile.Forward, b *corefile.Block,
) *forward.Forwarder {
	own := s.Network.Held()
	upstreams = slices.DeleteFunc(slices.Clone(upstreams), func(u netip.AddrPort) bool {
		return u.Addr() == own || slices.Contains(r.excluded, u)
	})
	return forward.New(ctx, forward.Config{Upstreams: upstreams, TTLMax: b.CacheTTLMax, ForceTCP: f.ForceTCP, Counts: &s.metrics.forwarded})
}

// forwarder is who is asked about a name in lower case; nil: nobody.
func (r *routes) forwarder(b *corefile.Block, name string) *forward.Forwarder {
	if b == nil {
		return r.usual
	}
	for _, f := range r.branches[b] {
		within := func(zone string) bool { return corefile.Within(name, zone) }
		if slices.ContainsFunc(f.From, within) && !slices.ContainsFunc(f.Except, within) {
			return f.Forwarder
		}
	}
	return nil
}

// all are the forwarders, each once.
func (r *routes) all() []*forward.Forwarder {
	all := []*forward.Forwarder{r.usual}
	for _, branches := range r.branches {
		for _, b := range branches {
			all = append(all, b.Forwarder)
		}
	}
	return all
}

// parsed leaves out what is no address; corefile has told of it.
func parsed(texts []string) []netip.AddrPort {
	var all []netip.AddrPort
	for _, text := range texts {
		if at, err := netip.ParseAddrPort(text); err == nil {
			all = append(all, at)
		}
	}
	return all
}

// serversOf are those of a resolv.conf, without our own address: we would ask ourselves.
func serversOf(texts []string, own netip.Addr) []netip.AddrPort {
	var all []netip.AddrPort
	for _, text := range texts {
		if address, err := netip.ParseAddr(text); err == nil && address != own {
			all = append(all, netip.AddrPortFrom(address, dnsPort))
		}
	}
	return all
}

// probe is a name that only this process knows: who asks for it was asked by us.
type probe struct {
	name string
	seen *atomic.Int64
}

func newProbe() probe {
	return probe{strings.ToLower(rand.Text()) + ".loop.setpoint.", &atomic.Int64{}}
}

// dropLoops finds servers that ask this one, once it listens, and asks them no more.
func (s *server) dropLoops(ctx context.Context, r *routes, ready <-chan struct{}) {
	select {
	case <-ctx.Done():
		return
	case <-ready:
	}
	var looped []netip.AddrPort
	for _, f := range r.all() {
		looped = append(looped, f.Looped(ctx, s.probe.name, s.probe.seen.Load)...)
	}
	if len(looped) == 0 || ctx.Err() != nil {
		return
	}
	s.Logger.Warn("DNS servers lead back to the cluster's own: they are not asked", "servers", fmt.Sprint(looped))
	without := s.newRoutes(ctx, r.text, r.node, looped)
	if s.routes.CompareAndSwap(r, without) {
		r.cancel()
	} else {
		without.cancel()
	}
}
