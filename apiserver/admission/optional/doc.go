// Package optional holds upstream's admission plugins that run only if --enable-admission-plugins names them, one a file.
//
// Package server makes those that are enabled and hands them to apiserver/admission, which runs each at its place in upstream's order.
// Their configuration comes from apiserver/admission/configuration, in upstream's formats. A plugin is a function of the request, its
// configuration and the namespace as this replica has it; only ImagePolicyWebhook asks over the network, and EventRateLimit remembers
// what it has let pass.
//
// Messages are upstream's. Each plugin is tested with a table of requests.
package optional
