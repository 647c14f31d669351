// Package quorum counts voters. Each proof that needs a majority asks it. It is pure, and promises that members without
// a vote count for nothing. A table tests it.
package quorum
