// Package cdi makes the embedded runtime understand names of the Container Device Interface (CDI): it reads the specs that drivers keep in
// /etc/cdi and /var/run/cdi, and turns what they say of a device into what CRI has words for.
//
// It owns: that translation; reading and checking specs is the library's (tags.cncf.io/container-device-interface).
//
// Promises: variables, device nodes, bind mounts and additional groups are honoured. What the runtime cannot do it refuses, and names it:
// hooks, network devices, Intel RDT, other owners and modes of nodes, other mounts, and names that no spec has. The configuration that it
// is given stays as it is.
//
// Tested with specs in a folder of the test, and in agent with a real container.
package cdi
