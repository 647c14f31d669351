// Package certificatecleaner deletes certificate signing requests and certificate requests of pods that nobody needs
// any more.
//
// New and NewOfPods are two controllers, as upstream's.
//
// Reads: CertificateSigningRequests; the metadata of PodCertificateRequests, by a list every podInterval, so that no
// server keeps them. Writes: both (delete). It owns no field.
//
// It promises: a request goes an hour after it was answered (approved and issued, denied or failed), a day after it was
// made if nobody answered, a day after its approval if nobody signed, and once the certificate that was issued has ended;
// a pass follows each hour. A request of a pod goes after podLife; a pass follows each five minutes. A deletion names the
// version that was judged, of pods' requests the uid. While nothing is due nothing is written.
//
// When a signing request has gone, its approval no longer keeps the name of a node that never registered
// (package certificates, names.go): as in every cluster with upstream's cleaner, that is an hour after it was issued.
//
// Tests: the plan as a table at both sides of each limit; both controllers in synctest bubbles.
package certificatecleaner
