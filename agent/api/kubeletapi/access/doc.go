// Package access decides who may ask a node's port: servers and, for layers of images, other nodes, by their certificates, and users
// whose bearer tokens the servers know and whom they allow it, as a kubelet's delegated authentication and authorization do. So
// Prometheus and other programs read a node's metrics with the token of their service account.
//
// agent/api/kubeletapi puts a [Guard] before its handlers. The servers are asked by TokenReview and SubjectAccessReview;
// their answers are kept for a while ([Config]).
//
// It promises: without a server's certificate or a token that the servers know no handler runs; what is the servers' alone
// is refused to users, and to other nodes; at most reviewsMax questions are under way, more requests get 429; tokens are kept as hashes.
//
// The attributes of a request are a table (upstream's, pkg/kubelet/server/auth.go); the rest is tested over client-go's fake.
package access
