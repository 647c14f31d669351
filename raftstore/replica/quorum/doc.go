// Package quorum counts voters. It is called by raftstore/replica for each proof that needs a majority. It is pure, and
// promises that members without a vote count for nothing. A table tests it.
package quorum
