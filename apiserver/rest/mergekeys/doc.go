// Package mergekeys refuses strategic merge patches in which the merge key of a list item is a map or a list,
// because upstream panics when it compares such keys, and those that change long lists (Affordable), because upstream compares each
// item with all others.
//
// apiserver/rest puts it before upstream's handlers. It owns nothing and imports
// nothing of ours; the tests of package apiserver patch through it. Tested with tables.
package mergekeys
