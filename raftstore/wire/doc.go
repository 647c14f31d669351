// Package wire reads and writes the few shapes that the store's binary formats
// are made of: unsigned varints, bytes, and byte strings with a length in front.
//
// It imports only the standard library.
//
// Promises: a Reader never panics, never reads past its input, and gives zero
// values after its first failure, so callers look at Err once, at the end.
//
// Tested here, and by the fuzz targets of its callers.
package wire
