// Command images packs the images that cases of classes C and D run, without any
// registry: one archive that an agent loads from its images folder.
//
// They have upstream's names, which the suite itself tells, and upstream's programs
// as far as these are Go (agnhost, nonewprivs, sample-apiserver, etcd). The userland of all is busybox, so
// they lack what only Alpine has: curl, nc, dig, nslookup, getent and printenv are our own (client), there is no iperf
// or CoreDNS. The image for DNS with glibc has no glibc: it asks with the same programs as agnhost, which
// upstream builds with musl. What PATH finds as sh is bash, because Debian's busybox takes variables
// such as data-1 out of the environment, which upstream's does not; /bin/sh is
// busybox, for its messages, but in agnhost and where cases call the dd of coreutils. nginx is busybox' httpd on the same port and folder.
//
// Tests cover the file system of a layer and that the archive names each image.
package main
