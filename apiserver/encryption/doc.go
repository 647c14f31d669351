// Package encryption says how objects are encrypted before they are stored.
//
// It owns the configuration, and the Keeper, which keeps the store as it says. The
// configuration is the cluster's own, a file in the trust folder that encrypts Secrets with
// a key of the cluster, and on top of it the administrator's
// (--encryption-provider-config). Both are upstream's EncryptionConfiguration, and what
// encrypts is upstream's: aesgcm, aescbc, secretbox, KMS v2.
//
// Package server makes a Keeper and runs it: Run and Inspect on every server, Rewrite on the leader. It calls
// apiserver/storage for that, which asks an Encryption for every kind.
//
// The cluster's own keys are handed in as they are in the file, and put in force by Reload, for whoever rotates them (server/rotations).
// Nothing is encrypted with them before the server knows which one the cluster uses (Config.MayWrite).
//
// It promises that what the cluster's own configuration encrypted stays readable under
// every other, that a file with mistakes changes nothing, and that a KMS plugin that does
// not answer keeps no server from starting.
//
// It is tested here with files and with a KMS plugin on a socket; what storage does with
// it is tested there, and three servers whose key is turned in package server.
package encryption
