// Package durable writes files that a power cut does not take back.
//
// It owns the order of system calls that this takes: the bytes are synced, then the file gets its name, then the folder that has the name
// is synced. It holds nothing and may be called from anywhere.
//
// Promises:
//   - A file appears under its name when it is whole and on the disk. A reader sees the former content or the new one.
//   - When a call returned without an error, a power cut leaves the new content.
//   - What failed leaves what was there, and no part of the new file; but if only the sync of the folder failed, the
//     new file is there, and a power cut may take it back.
//
// What is written often and may fall back to its former content after a power cut goes through agent/base/private, which does not sync the
// folder. Tested with failures and with a link in the way; that the bytes reach the disk is what
// test/powercut looks at.
package durable
