// Package csinode keeps the CSINode of this node: which drivers serve volumes here, under which id, and by which labels of
// the node their volumes are placed.
//
// It owns: our CSINode, and on our Node the labels that drivers name. It may call: client-go.
//
// Promises: what was Set is written until it is there, and again when the Node was made anew; entries of drivers that were
// never Set or Removed here stay, as with a kubelet, since they may register later; nothing is written when nothing has
// changed.
//
// Tested in a synctest bubble over client-go's fake clientset.
package csinode
