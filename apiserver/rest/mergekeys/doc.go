// Package mergekeys refuses strategic merge patches in which the merge key of a list's
// item is a map or a list: upstream compares it with those of the object's items, and
// panics.
//
// apiserver/rest puts it before upstream's handlers. It owns nothing and imports
// nothing of ours; the tests of package apiserver patch through it.
package mergekeys
