// Package kept keeps the Services and EndpointSlices that a node's DNS answers from in a file, for an agent that starts while
// no server can be reached.
//
// It owns the form of the file: two lists in protobuf, compressed by gzip, whose checksum shows a damaged one. It may call
// agent/base/private.
//
// Promises: a file is replaced at once or not at all, only the node's administrators can read it, and one that is damaged or
// larger than [sizeMax] is an error, never a part of what was saved. Of each object it keeps what names are made from.
// Tested by a round trip, damaged files and a fuzz target.
package kept
