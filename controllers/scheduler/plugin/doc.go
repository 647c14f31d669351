// Package plugin defines what a scheduler plugin is and what it may look at.
//
// It owns the extension points (Filter, Score, Surveyor), the parsed views of a pod and of a node (Pod, Node), and the
// Rejection with which a plugin explains itself. The scheduler's engine calls plugins; package plugins implements them.
// It may import the Kubernetes API types and component-helpers, never a client, an informer or a clock.
//
// Promises: everything here is pure data and pure functions. A Pod never changes. A Node changes only through its
// methods, always under the scheduler's lock, so plugins need no locks of their own. A plugin never keeps a *Node.
//
// Why three extension points: a Filter or Score judges one node by itself, so its result stays valid for all pods that ask
// the same of a node until that node changes. A Survey judges a node by the pods on other nodes; it asks package views, which
// keeps the counts, so it too never counts the whole cluster.
//
// Tested by tables here and, through the plugins, by the generated worlds in package scheduler.
package plugin
