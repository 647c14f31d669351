// Package trial finds out what this machine can do for containers, by doing it: cgroups, namespaces and mounts, user namespaces.
//
// It owns nothing. The embedded runtime calls it before it says that it is ready, and for the features that it reports. It promises that
// an error says in one sentence what the machine lacks, and that nothing is left of a trial but what makes pods possible (Users). Tested
// through the embedded runtime.
package trial
