// Package certificates answers certificate signing requests.
//
// It reads CertificateSigningRequests. It approves those by which a node asks for its
// own client certificate, if whoever asks may (a SubjectAccessReview on
// certificatesigningrequests/nodeclient or /selfnodeclient says so), and signs what
// is approved for the signers kube-apiserver-client, kube-apiserver-client-kubelet
// and kubelet-serving. It owns their status.certificate and the condition Failed; the
// condition Approved belongs to whoever approves.
//
// Config.Signer holds the authority's key; the wiring fills it. A request that a
// signer may not sign fails with the reason, once. The list in controllers runs the
// package. Tested with a table of requests and in a bubble.
package certificates
