// Package certificates has the kinds of certificates.k8s.io/v1: CertificateSigningRequests,
// PodCertificateRequests and ClusterTrustBundles.
//
// Only the list of kinds (apiserver/kinds) calls this package (Kinds). Functions are pure and behave as the
// parent package promises; what depends on the time is handed it. Admission checks who may approve and sign.
// Golden files stand in testdata, and what needs fresh certificates is tested with tables.
package certificates
