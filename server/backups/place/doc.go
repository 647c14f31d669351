// Package place is where the files of backups are: a folder, or a bucket of an object store that speaks S3.
//
// It owns how a file gets there whole, and how one is found, read and removed. What is in a file, and which ones stay, is of package
// backups.
//
// Promises:
//   - Put returns without an error when what was written is there under its name and was read back, byte for byte the same (SHA-256).
//     In a folder no part of it ever has that name. In a bucket a file has it when its upload ended, and is removed again if what is
//     read back is not what was written.
//   - No server waits for ever at a bucket: an answer has to begin within a minute, a whole Put has PutTimeout.
//   - A bucket takes memory for one piece of partBytes; a file there is at most 10,000 of those.
//
// The folder has to exist: one that is not mounted is not made anew. Who may use a bucket is said by AWS_ACCESS_KEY_ID and
// AWS_SECRET_ACCESS_KEY, by ~/.aws/credentials or by the machine's role, in this order.
//
// Tested with real folders and with gofakes3, a server that others wrote.
package place
