package shares

// Limits say how many places there are, and how many of them one tenant gets.
type Limits struct {
	// All is how many tenants have together.
	All int
	// Each is how many one tenant has at most, even if more are left; 0: as many as the rule gives.
	Each int
	// Factor is how many times what was left a tenant may have; 0: 1. With 7 he leaves an eighth of all places to others.
	Factor int
	// Privileged is how many one privileged holder has at most; 0: any number. They are not among All.
	Privileged int
}

// Fits is the rule: whether a tenant that has some of all taken places may take that many more at once.
func (l Limits) Fits(has, taken, more int) bool {
	left := l.All - taken
	return more <= left && has+more <= max(1, l.Factor)*left && (l.Each == 0 || has+more <= l.Each)
}

// Holder is whose places are counted together.
type Holder struct {
	// Name is what people read in a refusal, such as "user anna". Holders with the same name are one.
	Name string
	// Privileged holders do not count among the tenants.
	Privileged bool
	// Stranger is one of those who are known by where they come from only. Some limits count all of them together too.
	Stranger bool
}

// Stranger is whoever is not known, by where it comes from.
func Stranger(source string) Holder {
	return Holder{Name: "whoever asks without a name from " + source, Stranger: true}
}

// Namespace is the tenant of what runs in a namespace, or belongs to it. What is in kube-system is the cluster's own, and privileged.
func Namespace(name string) Holder {
	return Holder{Name: "namespace " + name, Privileged: name == "kube-system"}
}

// fits is the rule for a holder that has some of its places, when tenants have taken some.
func (l Limits) fits(h Holder, has, taken int) bool {
	if h.Privileged {
		return l.Privileged == 0 || has < l.Privileged
	}
	return l.Fits(has, taken, 1)
}
