// Package certificates answers certificate signing requests.
//
// It reads CertificateSigningRequests. It approves those by which a node asks for its own client certificate,
// if whoever asks may (a SubjectAccessReview on certificatesigningrequests/nodeclient or /selfnodeclient says
// so) and the name is free or the node's own (names.go: it looks at the Node, and at what was approved before),
// and signs what is approved for the signers kube-apiserver-client, kube-apiserver-client-kubelet and, with an
// authority of its own, kubelet-serving. It owns their status.certificate and the condition Failed; the
// approver owns the condition Approved.
//
// Config.Signer holds the authority's key; server/term sets it. A request that a signer may not sign fails with
// the reason, once. The list in controllers runs the package. Tested with a table of requests and in a bubble.
package certificates
