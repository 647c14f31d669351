// Package secretfile writes files that a crash must not break, and that others must not read.
//
// It owns how such a file is replaced (whole, synced, with its former owner) and which modes files and folders have.
//
// Promise: whoever reads the file, or the folder after a power cut, finds the former content or the new one.
//
// Tested with what internal/trust keeps in such files, among it crashes between two of them.
package secretfile
