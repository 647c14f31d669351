// Package sealed encrypts backups to people who are not there: a server has the recipients' public keys and nothing that opens what it
// has made. The format is age's (https://age-encryption.org/v1), so the age program opens it too.
//
// It owns how recipients and identities are read, and how it is noticed that a file is encrypted.
//
// Promise: what Open returns is what was written, to its end, or an error; a changed byte and a missing end are errors.
//
// Tested by round trips, and by a script with the real binary (backup_bucket.txtar).
package sealed
