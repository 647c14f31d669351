// Package table prints objects as rows, for kubectl get, and tells who asks for them.
//
// It owns Convertor, which apiserver/rest gives to upstream's handlers for each kind. It promises that an object of a cache is
// only read. It is tested by apiserver's tests of lists.
package table
