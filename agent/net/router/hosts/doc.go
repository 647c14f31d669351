// Package hosts says whose a host is among the namespaces that name it in Ingresses, Gateways and their routes.
//
// It owns the rule: the oldest object that names a host has it for its namespace, and those of other namespaces are not served there,
// unless the namespace that has it shares it (Annotation). What is attached to one Gateway is the Gateway's affair: whom it lets in, and
// which route wins, the Gateway API says. A host is a name, a wildcard, or none, which is that of rules without a host; they are three
// different hosts, and who has one has no claim to another. It imports API types.
//
// Promises: pure; all nodes and the loops that tell of it find the same. Tested as a table.
package hosts
