// Package registries says from where the images of a registry are fetched: mirrors, their certificates and credentials.
//
// It reads what an administrator has written, in the form of k3s's registries.yaml (a file) or of containerd's certs.d (a folder with
// HOST/hosts.toml). The files are read for each pull, so a change needs no restart, and once at start, to see that all of them can be
// read. It calls go-containerregistry's types and the standard library.
//
// It promises: what is not understood is refused, by its name. The registry itself is the last place that is asked, and the only one that
// gets the pod's credentials. Secrets appear in no error.
//
// The forms are those of https://docs.k3s.io/installation/private-registry and
// https://github.com/containerd/containerd/blob/main/docs/hosts.md. Tested as tables, and with registries of the test.
package registries
