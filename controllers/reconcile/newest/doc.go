// Package newest owns the newest version of each object that a controller wrote itself, until its cache shows it.
//
// It calls nothing but the API types. Where expect counts created and deleted children, newest keeps whole objects: for loops that
// decide by the fields of an object which they have just changed, such as the claim that a volume belongs to.
//
// It promises: Get and List never give a version older than the cached one, nor one of another object of the same name;
// what the cache shows, or no longer has, is forgotten. All methods may be called from several goroutines.
//
// Tests: tables.
package newest
