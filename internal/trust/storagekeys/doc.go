// Package storagekeys owns the keys by which a cluster encrypts what it stores: how they are called, their text, and encryption.yaml.
//
// Promises: a file in which people have written more than keys is refused (ErrOwnFile) and never written over; it is replaced as a whole;
// a key that is printed says its name and no secret. The first key follows from the cluster's authority, which internal/trust knows.
//
// Tested over files and in memory, with each way in which a file may say more.
package storagekeys
