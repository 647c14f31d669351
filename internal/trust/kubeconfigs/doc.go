// Package kubeconfigs is the text of the kubeconfigs that a cluster makes, and what is renewed in them.
//
// It owns how one is made for a user and some servers, how certificates and authorities are replaced in one that people may have
// changed, and the link by which a machine's access is found. Files and keys are of who calls it.
//
// Promises: of a kubeconfig that is renewed everything stays but the certificates of the user and the authorities of clusters that
// believed one of ours; what is right already is not written again.
//
// Tested with the trust folder that internal/trust keeps.
package kubeconfigs
