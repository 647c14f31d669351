package rotations

// Proxies is the Mechanism of the authority by which aggregated servers know this one. It is held when they have been told, too.
type Proxies struct {
	KeyRing
	// IsTold reports whether aggregated servers can read of just those that the ring has.
	IsTold func() bool
}

// Held implements Mechanism: nothing is trusted that nobody was told of.
func (p Proxies) Held() (uses string, trusts []string) {
	uses, trusts = p.KeyRing.Held()
	if !p.IsTold() {
		return uses, nil
	}
	return uses, trusts
}
