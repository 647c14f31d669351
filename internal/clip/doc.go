// Package clip cuts, to a number of bytes, what is kept or logged of texts that others choose.
//
// It owns the cut (Text, Copy, List), which says how long the whole was, and the slog.Handler through which every log of a server
// and of an agent goes (Handler): a name, a header, a path or an error with one in it may have a megabyte. Whatever keeps such a text
// for longer than its request, in a ring, a queue or a log, calls it with a named limit. It calls nothing of this project.
//
// Promises: what fits is not changed and, but by Copy, costs nothing; what is cut holds no reference to the whole; no cut is inside of a
// character.
//
// Tested with tables; what a server keeps of the largest requests is tested in package server.
package clip
