// Package dynamic runs the admission that users configure while the cluster runs: mutating and validating
// webhooks, and policies in CEL. The plugins are upstream's
// (k8s.io/apiserver/pkg/admission/plugin/{webhook,policy}); this package feeds them from the informers over
// this replica's own tables and finds the pods behind the Services that webhooks name.
//
// Package server makes them for the end of the chain in apiserver/admission. Until
// the first configuration of a plugin exists the plugin is not even built, and a
// request pays for one look into an empty table. Configurations of webhooks and
// policies are exempt from all of them, as upstream: a webhook that refuses
// everything can still be deleted.
//
// A plugin may also have a folder of webhooks or policies (package manifests). It is asked for every request then, and also about
// configurations of webhooks and policies.
//
// A configuration acts on a replica as soon as its informer has it (webhooks:
// milliseconds; policies: up to a second, upstream's interval). Compiled expressions
// live as long as the object they belong to. The resolver is tested with a table,
// the rest through apiserver with real HTTPS servers.
package dynamic
