// Package segments keeps a raft log in segments: files of a fixed size whose blocks are on the disk before they
// are used, so that an append is one write and one fdatasync, and neither has anything to tell the file system.
//
// A log is a directory. Its segments are numbered without gaps; each holds records behind a header. A record is an
// entry, the order to forget the entries from an index on, the end of the segment, or the mark that the log was
// closed. Reading the records in their order gives the log. Nothing that was written is changed, but for what a
// crash left of the last append. See record.go for the layout.
//
// Promises:
//   - What StoreLogs returned for is on the disk, and is there after a crash. Of an append that did not return a
//     beginning may be there.
//   - Each record has a checksum over its place and its segment. Bytes that are not what was written give
//     ErrDamaged, at Open or when they are read. Only the end of the newest segment is cut, and only
//     if it can be what a crash left of one append: nothing whole that was written later is behind it. What was
//     closed by Close has such a mark behind it, so nothing of it is ever cut.
//   - A segment that is missing between others, of another log, renamed, copied or cut short gives ErrDamaged. That
//     the newest segments, or the whole directory, are missing is for the caller to notice.
//   - Trimming renames or removes files. At most spareSegmentsMax segments of the past are kept to be written again, and
//     one is made ahead.
//   - Room on the disk is taken before a segment is used, where the file system overwrites in place: an append that finds
//     none fails as a whole, with ENOSPC in its error, and may be tried again. It needs no more room than its records. After
//     any other error of a write nothing is appended any more.
//
// It imports nothing of ours but package eintr, and of hashicorp/raft only the types of an entry. One Log may be called by many
// goroutines. Who opens it makes sure that nobody else does.
//
// Tested with every byte flipped, every length, lost sectors of the last append in any combination, and crashes
// between the steps of a change of segments.
package segments
