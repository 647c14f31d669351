package network

import (
	"errors"
	"net/netip"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/setpoint-io/setpoint/agent/net/ipfamily"
)

const (
	// masqueradeMark is the bit of a packet's mark that says: replace its source. It is upstream's, and taken away on the way out.
	masqueradeMark = 0x4000
	// beforeTranslation is where the destination is still the Service's.
	beforeTranslation = nftables.ChainPriority(-110)
)

// frame makes what does not depend on the Services: the sets, still empty, and the rules that read them.
func (r *ruleset) frame(config TranslationConfig, cluster netip.Prefix) error {
	err := r.addSet(r.affinitySet(), nil)
	for _, set := range r.family.translationSets() {
		err = errors.Join(err, r.addSet(set, nil))
	}
	if config.LoopbackPorts {
		r.keepOffLoopback(config.Bridge)
		err = errors.Join(err, localnet(config.Bridge).set())
	}
	r.restrict()
	r.fromElsewhere(config, cluster)
	r.fromMachine(config)
	r.refuse(config)
	return errors.Join(err, r.replaceSources())
}

func (f family) translationSets() []*nftables.Set {
	var sets []*nftables.Set
	for _, name := range []string{ownSet, refusedSet, silentSet, masqueradedSet, keepingSet, restrictedSet} {
		sets = append(sets, &nftables.Set{Name: name, Concatenation: true, KeyType: f.serviceKey()})
	}
	for _, name := range []string{servicesMap, outsideMap} {
		sets = append(sets, &nftables.Set{
			Name: name, IsMap: true, Concatenation: true, KeyType: f.serviceKey(), DataType: nftables.TypeVerdict,
		})
	}
	ranges := nftables.MustConcatSetType(f.Key, nftables.TypeInetProto, nftables.TypeInetService, f.Key)
	return append(sets, &nftables.Set{Name: allowedSet, Concatenation: true, Interval: true, KeyType: ranges})
}

// endpointsSet is a map by a Service's key and a number. Marks are the kind of number of which nft knows the length: it ends
// abnormally where plain integers are part of a key.
func (f family) endpointsSet(count int) *nftables.Set {
	return &nftables.Set{Name: endpointsMap(count), IsMap: true, Concatenation: true, DataType: f.destinationType(),
		KeyType: nftables.MustConcatSetType(f.Key, nftables.TypeInetProto, nftables.TypeInetService, nftables.TypeMark)}
}

// set is one of the table's, to change its elements.
func (r *ruleset) set(name string) *nftables.Set { return &nftables.Set{Table: r.table, Name: name} }

func (r *ruleset) filterChain(name string, hook *nftables.ChainHook, priority nftables.ChainPriority) *nftables.Chain {
	return r.conn.AddChain(&nftables.Chain{Name: name, Table: r.table, Type: nftables.ChainTypeFilter, Hooknum: hook, Priority: &priority})
}

// restrict drops what comes from other sources than those that a Service has listed.
func (r *ruleset) restrict() {
	f := r.family
	hooks := map[string]*nftables.ChainHook{"restrict": nftables.ChainHookPrerouting, "restrict-output": nftables.ChainHookOutput}
	for name, hook := range hooks {
		chain := r.filterChain(name, hook, beforeTranslation)
		r.passOwn(chain, begins()...)
		r.addRule(chain, join(begins(), f.loadKey(), []expr.Any{
			&expr.Lookup{SourceRegister: f.addressRegister(), SetName: restrictedSet},
			f.loadSource(f.indexRegister()),
			&expr.Lookup{SourceRegister: f.addressRegister(), SetName: allowedSet, Invert: true},
			&expr.Verdict{Kind: expr.VerdictDrop},
		})...)
	}
}

// fromElsewhere translates what pods and other machines send.
func (r *ruleset) fromElsewhere(config TranslationConfig, cluster netip.Prefix) {
	f := r.family
	chain := r.conn.AddChain(&nftables.Chain{Name: "prerouting", Table: r.table, Type: nftables.ChainTypeNAT,
		Hooknum: nftables.ChainHookPrerouting, Priority: nftables.ChainPriorityRef(servicesPriority)})
	r.passOwn(chain)
	ports := destinationIs(expr.CmpOpEq, unix.RTN_LOCAL)
	if cluster.IsValid() {
		outside := f.Match(f.Source, expr.CmpOpNeq, cluster)
		r.addRule(chain, join(outside, f.loadKey(), f.leadBy(outsideMap))...)
		r.addRule(chain, join(outside, ports, f.loadPortKey(), f.leadBy(outsideMap))...)
		if config.Services.IsValid() {
			r.addRule(chain, join(outside, f.Match(f.Destination, expr.CmpOpEq, config.Services), mark())...)
		}
	}
	r.addRule(chain, join(f.loadKey(), f.isIn(masqueradedSet), mark())...)
	r.addRule(chain, join(ports, f.loadPortKey(), f.isIn(masqueradedSet), mark())...)
	r.addRule(chain, join(f.loadKey(), f.leadBy(servicesMap))...)
	r.addRule(chain, join(ports, f.loadPortKey(), f.leadBy(servicesMap))...)
}

// fromMachine translates what the machine itself sends. It is no outsider, but its address may be the Service's own.
func (r *ruleset) fromMachine(config TranslationConfig) {
	f := r.family
	chain := r.conn.AddChain(&nftables.Chain{Name: "output", Table: r.table, Type: nftables.ChainTypeNAT,
		Hooknum: nftables.ChainHookOutput, Priority: nftables.ChainPriorityRef(servicesPriority)})
	r.passOwn(chain)
	ports := destinationIs(expr.CmpOpEq, unix.RTN_LOCAL)
	if !config.LoopbackPorts {
		ports = append(f.Match(f.Destination, expr.CmpOpNeq, f.loopback), ports...)
	}
	for _, set := range []string{masqueradedSet, keepingSet} {
		r.addRule(chain, join(f.loadKey(), f.isIn(set), mark())...)
		r.addRule(chain, join(ports, f.loadPortKey(), f.isIn(set), mark())...)
	}
	r.addRule(chain, join(f.loadKey(), f.leadBy(servicesMap))...)
	r.addRule(chain, join(ports, f.loadPortKey(), f.leadBy(servicesMap))...)
}

// refuse answers for Services without endpoints, so that nobody waits, and drops what other nodes may have endpoints for.
func (r *ruleset) refuse(config TranslationConfig) {
	f := r.family
	drop := []expr.Any{&expr.Verdict{Kind: expr.VerdictDrop}}
	input := r.filterChain("refuse-input", nftables.ChainHookInput, 0)
	ports := append(destinationIs(expr.CmpOpEq, unix.RTN_LOCAL), f.Match(f.Destination, expr.CmpOpNeq, f.loopback)...)
	chains := []*nftables.Chain{
		input,
		r.filterChain("refuse-forward", nftables.ChainHookForward, 0),
		r.filterChain("refuse-output", nftables.ChainHookOutput, 0),
	}
	for _, chain := range chains {
		r.passOwn(chain, begins()...)
	}
	r.reject(input, begins(), ports, f.loadPortKey(), f.isIn(refusedSet))
	r.addRule(input, join(begins(), ports, f.loadPortKey(), f.isIn(silentSet), drop)...)
	for _, chain := range chains {
		r.reject(chain, begins(), f.loadKey(), f.isIn(refusedSet))
		r.addRule(chain, join(begins(), f.loadKey(), f.isIn(silentSet), drop)...)
		if chain != input && config.Services.IsValid() {
			// What has been translated is no longer in this range, and what the machine has is its own.
			unknown := f.Match(f.Destination, expr.CmpOpEq, config.Services)
			r.reject(chain, begins(), unknown, destinationIs(expr.CmpOpNeq, unix.RTN_LOCAL))
		}
	}
}

// reject answers what matches. A client of this machine that gets an answer by ICMP of IPv6 while it is still in connect(2) learns
// that it is refused a second later, when it tries again: connections of IPv6 are reset.
func (r *ruleset) reject(chain *nftables.Chain, match ...[]expr.Any) {
	if r.family.number == inet6.number {
		reset := &expr.Reject{Type: unix.NFT_REJECT_TCP_RST}
		r.addRule(chain, append(join(ipfamily.ProtocolIs(unix.IPPROTO_TCP), join(match...)), reset)...)
	}
	r.addRule(chain, append(join(match...), &expr.Reject{Type: unix.NFT_REJECT_ICMP_UNREACH, Code: r.family.portUnreachable})...)
}

// replaceSources gives the machine's own address to what is marked, and to what a pod sends to itself.
func (r *ruleset) replaceSources() error {
	chain, err := r.returnOwn(nil)
	if err != nil {
		return err
	}
	bit := binaryutil.NativeEndian.PutUint32(masqueradeMark)
	r.addRule(chain,
		&expr.Meta{Key: expr.MetaKeyMARK, Register: firstRegister},
		&expr.Bitwise{SourceRegister: firstRegister, DestRegister: secondRegister, Len: 4, Mask: bit, Xor: make([]byte, 4)},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: secondRegister, Data: make([]byte, 4)},
		&expr.Bitwise{SourceRegister: firstRegister, DestRegister: firstRegister, Len: 4,
			Mask: binaryutil.NativeEndian.PutUint32(^uint32(masqueradeMark)), Xor: make([]byte, 4)},
		&expr.Meta{Key: expr.MetaKeyMARK, Register: firstRegister, SourceRegister: true},
		&expr.Masq{FullyRandom: true})
	return nil
}

// mark sets the bit and leaves others' bits.
func mark() []expr.Any {
	bit := uint32(masqueradeMark)
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyMARK, Register: firstRegister},
		&expr.Bitwise{SourceRegister: firstRegister, DestRegister: firstRegister, Len: 4,
			Mask: binaryutil.NativeEndian.PutUint32(^bit), Xor: binaryutil.NativeEndian.PutUint32(bit)},
		&expr.Meta{Key: expr.MetaKeyMARK, Register: firstRegister, SourceRegister: true},
	}
}

func (f family) isIn(set string) []expr.Any {
	return []expr.Any{&expr.Lookup{SourceRegister: f.addressRegister(), SetName: set}}
}

// leadBy goes where a map of verdicts leads.
func (f family) leadBy(verdicts string) []expr.Any {
	return []expr.Any{&expr.Lookup{SourceRegister: f.addressRegister(), IsDestRegSet: true, SetName: verdicts}}
}

func join(parts ...[]expr.Any) []expr.Any {
	var all []expr.Any
	for _, part := range parts {
		all = append(all, part...)
	}
	return all
}
