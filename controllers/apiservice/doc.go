// Package apiservice keeps APIServices: it registers the group versions that this API serves itself, built-in
// ones and those of CustomResourceDefinitions, and checks whether the servers of the others are available.
//
// Package server provides the Prober, which dials these servers.
//
// Reads: APIServices, CustomResourceDefinitions, Services, EndpointSlices. Writes:
// APIServices (create, update, status, delete).
// Owns: .spec of APIServices with the label kube-aggregator.kubernetes.io/automanaged;
// the condition Available.
//
// It promises: a group version that is served here is listed, and one that no definition serves any more is
// not; an APIService without the label belongs to its user and is left alone, and so is one of metrics.k8s.io
// that names a Service, whatever its label; reasons and messages are upstream's; a server is asked again every
// half minute, and at once when its Service or endpoints change; nothing is written when nothing has changed.
// Unlike upstream, which makes those of built-in groups only when it starts, they are kept: one that was deleted
// or changed by mistake comes back.
//
// Plans are tested by tables, the loop in a bubble over the published fake.
package apiservice
