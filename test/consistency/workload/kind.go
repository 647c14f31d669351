package workload

// A Kind is one whose objects an epoch's clients write. No controller changes them, so every change is a client's.
type Kind struct {
	group    string // the path of its API group
	resource string
}

// Kinds are written in turn, an epoch each. A PUT makes none of them (it makes Leases and Roles): to a client of those, a conflict
// would not say whether the object is there.
var Kinds = []Kind{
	{"/api/v1", "configmaps"},
	{"/api/v1", "secrets"},
	{"/apis/networking.k8s.io/v1", "networkpolicies"},
	{"/api/v1", "serviceaccounts"},
}

// KindOf is that of an epoch, which are counted from 1.
func KindOf(epoch int) Kind { return Kinds[(epoch+len(Kinds)-1)%len(Kinds)] }

// String is its resource.
func (k Kind) String() string { return k.resource }

// path is where the objects of a namespace are.
func (k Kind) path(namespace string) string {
	return k.group + "/namespaces/" + namespace + "/" + k.resource
}
