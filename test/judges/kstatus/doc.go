// Package kstatus compares the judge of package judges that stands for kstatus with kstatus itself, sigs.k8s.io/cli-utils: both judge the
// stories of package judges, its planted statuses, and objects that are generated from a seed.
//
// It is a module of its own, so that the product does not require that library.
package kstatus
