// Command critest judges the embedded runtime by upstream's own suite for runtimes, critest of sigs.k8s.io/cri-tools:
// `make critest`. It is a module of its own, because the suite wants libraries that the product does not.
//
// run.sh builds the suite and enters a network and a mount namespace with nothing but loopback. Here this program serves
// the images that the suite pulls, under the names and by the TLS port of their registries, which /etc/hosts and a
// certificate authority of this run point to loopback; it starts `setpoint cri`, runs the suite against its socket,
// ends the command, looks for what was left, and compares what failed with explained.tsv. It fails if a case failed that
// is not listed there, or if something was left. With -update it writes RESULTS.md.
//
// The images are upstream's by name only: their userland is Debian's static busybox, with scripts for what that lacks
// (ipcs, pgrep), and nginx is the program webserver.
package main
