package storage

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Keys are /<group>/<resource>/[<namespace>/]<name>, with "core" for the group
// without a name. Names cannot hold a slash, so prefixes never overlap.
const (
	coreGroup    = "core"
	claimsPrefix = "/claims/"
)

func resourcePrefix(gr schema.GroupResource) string {
	group := gr.Group
	if group == "" {
		group = coreGroup
	}
	return "/" + group + "/" + gr.Resource + "/"
}

// prefix is the key prefix of the table, or of one namespace in it.
func (t *Table) namespacePrefix(namespace string) string {
	if t.kind.ClusterScoped || namespace == "" {
		return t.prefix
	}
	return t.prefix + namespace + "/"
}

func (t *Table) key(namespace, name string) string {
	return t.namespacePrefix(namespace) + name
}

// ClaimKey names something of which there is only one, such as an address. The
// owner's write claims it in the same transaction.
func ClaimKey(pool, value string) string { return claimsPrefix + pool + "/" + value }
